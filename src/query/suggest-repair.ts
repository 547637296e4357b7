// If the guard refuses a query, this file searches for a similar query that the guard allows. The refusal contains that
// query as a suggestion. The driver proposes small changes, using only exposed and allowed names.
import type { Catalog, Denied, Driver, Limits, Verdict } from '../drivers/driver.ts'
import { AppError } from '../errors.ts'
import { inSlices } from '../event-loop-slices.ts'

const CHARS_MAX = 4_096
/** The maximum number of changed queries that the guard checks after one refusal. */
const TRIES_MAX = 10
const CHANGES_MAX = 3
/** The time limit for the search. Each try costs as much as the check of the refused query. */
const JUDGING_MS = 500

export interface Refused {
  readonly driver: Pick<Driver, 'read' | 'confine' | 'repairs'>
  /** The caller's body, which the driver has read. */
  readonly body: unknown
  readonly text: string
  readonly denied: Denied
  readonly exposed: Catalog
  readonly limits: Limits
}

/** Returns SQL text, or an object with `collection`, `filter` and `pipeline`. Undefined if no repair was found. */
export async function suggestionFor(refused: Refused, signal: AbortSignal): Promise<unknown> {
  const { driver, body, text, exposed } = refused
  if (typeof body !== 'object' || body === null || text.length > CHARS_MAX) return undefined
  /** The bodies that the guard refused. Bodies with fewer changes come first. */
  const open: { readonly body: object; readonly denied: Denied; readonly changes: number }[] = [
    { body, denied: refused.denied, changes: 0 },
  ]
  const seen = new Set([JSON.stringify(body)])
  const turn = inSlices()
  const began = performance.now()
  let tries = 0
  for (const { body, denied, changes } of open) {
    for (const candidate of driver.repairs(body, denied, exposed)) {
      const written = JSON.stringify(candidate)
      if (seen.has(written)) continue
      seen.add(written)
      await turn()
      if (tries >= TRIES_MAX || signal.aborted || performance.now() - began > JUDGING_MS) return undefined
      tries++
      const verdict = await judged(refused, candidate, signal)
      if (verdict?.kind === 'confined') return queryIn(candidate)
      if (verdict?.kind === 'denied' && isAnotherPlace(verdict, denied) && changes + 1 < CHANGES_MAX) {
        open.push({ body: candidate, denied: verdict, changes: changes + 1 })
      }
    }
  }
  return undefined
}

/** Null if the body is invalid (for example, a parameter is unused), or if the call was aborted. */
async function judged(
  { driver, exposed, limits }: Refused,
  body: object,
  signal: AbortSignal,
): Promise<Verdict | null> {
  try {
    return await driver.confine(driver.read(body), exposed, limits, signal)
  } catch (error) {
    if (error instanceof AppError || signal.aborted) return null
    throw error
  }
}

/** Returns true if the change helped: the guard now refuses another name or kind. */
function isAnotherPlace(now: Denied, before: Denied): boolean {
  return now.blocked.name !== before.blocked.name || now.blocked.kind !== before.blocked.kind
}

function queryIn(body: object): unknown {
  const { sql, collection, filter, pipeline }: Readonly<Record<string, unknown>> = { ...body }
  if (typeof sql === 'string') return sql
  return { collection, ...(filter !== undefined && { filter }), ...(pipeline !== undefined && { pipeline }) }
}
