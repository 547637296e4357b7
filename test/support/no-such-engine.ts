// Defines the error for an engine that is not available on this machine, and decides whether a test may be skipped
// without its engine. CI sets TEST_ENGINES=required, and then every engine is required.
import type { TestContext } from 'node:test'

/** An engine is missing. The message is the line that a skipped test prints. */
export class NoSuchEngine extends Error {
  override readonly name = 'NoSuchEngine'
}

/**
 * Returns the engine, or the error that says why it is missing. Throws this error if engines are required. Always
 * throws any other error.
 */
export async function engineOrLack<T>(start: () => Promise<T>): Promise<T | NoSuchEngine> {
  try {
    return await start()
  } catch (error) {
    if (!(error instanceof NoSuchEngine) || process.env['TEST_ENGINES'] === 'required') throw error
    return error
  }
}

/** Returns the engine, or null after skipping the test with one line. Throws if engines are required. */
export async function engineOrSkip<T>(t: Pick<TestContext, 'skip'>, start: () => Promise<T>): Promise<T | null> {
  const engine = await engineOrLack(start)
  if (!(engine instanceof NoSuchEngine)) return engine
  t.skip(engine.message)
  return null
}

/** Returns, for `describe(…, { skip })`, why a whole file is skipped, or false. Throws if engines are required. */
export async function skipWithout(start: () => Promise<AsyncDisposable>): Promise<string | false> {
  const engine = await engineOrLack(start)
  if (engine instanceof NoSuchEngine) return engine.message
  await engine[Symbol.asyncDispose]()
  return false
}
