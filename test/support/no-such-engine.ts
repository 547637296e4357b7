// An engine that a test asks for and this machine cannot have.
import type { TestContext } from 'node:test'

/** The message is the one line of the skip. */
export class NoSuchEngine extends Error {
  override readonly name = 'NoSuchEngine'
}

/** The engine, or null and the test skipped with one clear line. CI sets TEST_ENGINES=required: there none may lack. */
export async function engineOrSkip<T>(t: Pick<TestContext, 'skip'>, start: () => Promise<T>): Promise<T | null> {
  try {
    return await start()
  } catch (error) {
    if (!(error instanceof NoSuchEngine) || process.env['TEST_ENGINES'] === 'required') throw error
    t.skip(error.message)
    return null
  }
}
