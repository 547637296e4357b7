// Decides whether a test may be skipped if its engine is missing on this machine. CI sets TEST_ENGINES=required, so
// that every engine is required.
import type { TestContext } from 'node:test'

/** A skipped test prints the message. */
export class NoSuchEngine extends Error {
  override readonly name = 'NoSuchEngine'
}

/**
 * Starts an engine. If it is missing, returns the error. If engines are required, throws the error. Always throws any
 * other error.
 */
export async function engineOrLack<T>(start: () => Promise<T>): Promise<T | NoSuchEngine> {
  try {
    return await start()
  } catch (error) {
    if (!(error instanceof NoSuchEngine) || process.env['TEST_ENGINES'] === 'required') throw error
    return error
  }
}

/** Starts an engine. If it is missing, skips the test and returns null. If engines are required, throws. */
export async function engineOrSkip<T>(t: Pick<TestContext, 'skip'>, start: () => Promise<T>): Promise<T | null> {
  const engine = await engineOrLack(start)
  if (!(engine instanceof NoSuchEngine)) return engine
  t.skip(engine.message)
  return null
}

/** For `describe(…, { skip })`: returns why a whole file is skipped, or false. If engines are required, throws. */
export async function skipWithout(start: () => Promise<AsyncDisposable>): Promise<string | false> {
  const engine = await engineOrLack(start)
  if (engine instanceof NoSuchEngine) return engine.message
  await engine[Symbol.asyncDispose]()
  return false
}
