// An engine that a test asks for and this machine cannot have. Here alone is decided whether a test may go without one:
// CI sets TEST_ENGINES=required, and there none may lack.
import type { TestContext } from 'node:test'

/** The message is the one line of the skip. */
export class NoSuchEngine extends Error {
  override readonly name = 'NoSuchEngine'
}

/** The engine, or why there is none. Throws that where none may lack. */
export async function engineOrLack<T>(start: () => Promise<T>): Promise<T | NoSuchEngine> {
  try {
    return await start()
  } catch (error) {
    if (!(error instanceof NoSuchEngine) || process.env['TEST_ENGINES'] === 'required') throw error
    return error
  }
}

/** The engine, or null and the test skipped with one clear line. Throws where none may lack. */
export async function engineOrSkip<T>(t: Pick<TestContext, 'skip'>, start: () => Promise<T>): Promise<T | null> {
  const engine = await engineOrLack(start)
  if (!(engine instanceof NoSuchEngine)) return engine
  t.skip(engine.message)
  return null
}

/** For `describe(…, { skip })`: why a whole file goes without its engine, or false. Throws where none may lack. */
export async function skipWithout(start: () => Promise<AsyncDisposable>): Promise<string | false> {
  const engine = await engineOrLack(start)
  if (engine instanceof NoSuchEngine) return engine.message
  await engine[Symbol.asyncDispose]()
  return false
}
