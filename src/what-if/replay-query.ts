// Asks only the guard whether an audited query would pass now. Sends no query and spends no budget.
import { setImmediate } from 'node:timers/promises'
import type { Catalog, Driver, Limits, QueryBody, Verdict } from '../drivers/driver.ts'
import { AppError } from '../errors.ts'
import type { TeamOwner } from '../teams/team-owner.ts'

/** These limits do not affect the verdict, only the query that would be sent. */
const LIMITS: Limits = { rowCap: 1_000, maxResponseBytes: 1, timeoutMs: 10_000, maxCost: 1 }

/** Returns null if the text cannot be parsed. */
export function bodyOf(driver: Pick<Driver, 'reread'>, text: string, params: unknown): QueryBody | null {
  try {
    return driver.reread(text, params)
  } catch (error) {
    if (error instanceof AppError && error.code === 'INVALID_REQUEST') return null
    throw error
  }
}

/** Yields to the event loop first. Throws the errors of Driver.confine, and the abort reason of `signal`. */
export async function judge(
  driver: Pick<Driver, 'confine'>,
  body: QueryBody,
  exposed: Catalog,
  owner: TeamOwner,
  signal: AbortSignal,
): Promise<Verdict> {
  await setImmediate()
  signal.throwIfAborted()
  return await driver.confine(body, exposed, { ...LIMITS, owner }, signal)
}
