// One audited query judged again, by the guard alone: no database is asked, no budget spent, and what live queries are
// remembered by is left as it is.
import { setImmediate } from 'node:timers/promises'
import type { Catalog, Driver, Limits, QueryBody, Verdict } from '../drivers/driver.ts'
import { AppError } from '../errors.ts'

/** A verdict rests on names and forms, never on these: they only go into what would be sent. */
const LIMITS: Limits = { rowCap: 1_000, maxResponseBytes: 1, timeoutMs: 10_000, maxCost: 1 }

/** The body behind an audited text and its parameters; null where it cannot be told. */
export function bodyOf(driver: Pick<Driver, 'reread'>, text: string, params: unknown): QueryBody | null {
  try {
    return driver.reread(text, params)
  } catch (error) {
    if (error instanceof AppError && error.code === 'INVALID_REQUEST') return null
    throw error
  }
}

/** Judges, and lets whoever else waits for this thread go first. Throws as Driver.confine, and the reason of `signal`. */
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
