// Writes a program that runs several test files in one process, which imports the service once.
import { pathToFileURL } from 'node:url'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

const urlOf = (file: string): string => JSON.stringify(pathToFileURL(join(ROOT, file)).href)

/**
 * The files run one after the other, each as a suite that is named like the file. Node runs the hooks of the modules
 * `hooks` once for all files.
 */
export function inOneProcess(files: readonly string[], hooks: readonly string[] = []): string {
  const imports = hooks.map((file) => `import ${urlOf(file)}`)
  const suites = files.map((file) => `describe(${JSON.stringify(file)}, async () => { await import(${urlOf(file)}) })`)
  return ["import { describe } from 'node:test'", ...imports, ...suites, ''].join('\n')
}
