// Pure: what of a query the audit keeps. Where the team has literals redacted, only what is told by names: the driver takes
// the literals out, and where it cannot, there is no text at all.
import { Blocked as BlockedSchema } from '../audit/reading/page.ts'
import type { AuditEntry } from '../audit/rows.ts'
import type { Blocked, Driver } from '../drivers/driver.ts'
import type { AppError } from '../errors.ts'

/** What is known of a query when it has ended. */
export interface Told {
  readonly query: string | null
  readonly printed: string | null
  /** It was parsed: only then is it known where its literals are. */
  readonly isRead: boolean
  readonly blocked?: Blocked | undefined
}

/** What is blocked by the guard's own words, whatever the query says. */
const OWN_WORDS: ReadonlySet<string> = new Set(['cost', 'limit', 'statement'])

export function keptOf(
  driver: Pick<Driver, 'redacted'>,
  told: Told,
  redacts: boolean,
): Pick<AuditEntry, 'query' | 'printed' | 'redacted' | 'blocked'> {
  const { query, printed, isRead, blocked } = told
  if (!redacts) return { query, printed, blocked }
  const without = (text: string | null) => (text === null || !isRead ? null : (driver.redacted?.(text) ?? null))
  const kept = without(query)
  return {
    query: kept,
    printed: without(printed),
    redacted: query !== null,
    blocked: blocked === undefined ? undefined : nameless(blocked, kept),
  }
}

/** As a refusal carries it; undefined where it carries none. */
export function blockedOf(error: AppError): Blocked | undefined {
  const read = BlockedSchema.safeParse(error.extra['blocked'])
  return read.success ? read.data : undefined
}

/** A name that was not seen outside of literals may be one. */
function nameless(blocked: Blocked, kept: string | null): Blocked {
  const isName = OWN_WORDS.has(blocked.kind) || kept?.toLowerCase().includes(blocked.name.toLowerCase()) === true
  return isName ? blocked : { kind: blocked.kind, name: '?' }
}
