// The environment of a process that a test starts. Of the variables of the test run, it has only PATH and the compile
// cache.

/**
 * Turns the demo off. `more` takes precedence. Without the compile cache, each start would strip and compile all
 * sources, which takes half of its CPU time.
 */
export function environment(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const { PATH, NODE_COMPILE_CACHE } = process.env
  return { PATH, ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }), VITRINE_DEMO: '0', ...more }
}
