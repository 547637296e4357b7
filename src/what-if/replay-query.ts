// Judges one audited query again, only with the guard. Queries no database, spends no budget, and does not change the
// caches of live queries.
import { setImmediate } from 'node:timers/promises'
import type { Catalog, Driver, Limits, QueryBody, Verdict } from '../drivers/driver.ts'
import { AppError } from '../errors.ts'

/** Arbitrary limits. They affect only the query that would be sent. The verdict depends on names and syntax. */
const LIMITS: Limits = { rowCap: 1_000, maxResponseBytes: 1, timeoutMs: 10_000, maxCost: 1 }

/** Rebuilds the body from an audited text and its parameters. Returns null if the text cannot be read. */
export function bodyOf(driver: Pick<Driver, 'reread'>, text: string, params: unknown): QueryBody | null {
  try {
    return driver.reread(text, params)
  } catch (error) {
    if (error instanceof AppError && error.code === 'INVALID_REQUEST') return null
    throw error
  }
}

/** Yields to the event loop and then judges. Throws the errors of Driver.confine, or the signal's reason. */
export async function judge(
  driver: Pick<Driver, 'confine'>,
  body: QueryBody,
  exposed: Catalog,
  signal: AbortSignal,
): Promise<Verdict> {
  await setImmediate()
  signal.throwIfAborted()
  return await driver.confine(body, exposed, LIMITS, signal)
}
