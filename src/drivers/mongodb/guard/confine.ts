// The MongoDB guard: body and exposure in, one confined aggregate or a refusal out. It knows no server, no client library
// and no clock, and nothing it does not understand is passed on.
import { seal } from '../../confined.ts'
import type { Catalog, Denied, Limits, Malformed, Verdict } from '../../driver.ts'
import { HERE, IN_THREAD, judge, type Case, type Judged } from './judge.ts'
import type { MongoBody } from './read-body.ts'
import { refusedLimit } from './refusal.ts'
import { unpackQuery, type PackedQuery } from './query-transfer.ts'

/** What a thread says of a body. */
export type Answer = Exclude<Judged, { kind: 'made' }> | { readonly kind: 'packed'; readonly query: PackedQuery }

/** The threads are handed in, so that the guard itself does no I/O; judge-threads.ts has those that are used. */
export interface Threads {
  /** Null where no thread could judge it. Rejects for an aborted signal alone, with its reason. */
  judge(asked: Case, signal: AbortSignal): Promise<Answer | null>
  /** Lets other requests have their turn. */
  turn(): Promise<void>
}

/**
 * Confines one query to the exposed catalog: on the spot where that takes a few milliseconds, else in a thread. The sealed
 * value is a MongoQuery. Rejects where the signal is aborted.
 */
export async function confineAside(
  threads: Threads,
  body: MongoBody,
  exposed: Catalog,
  limits: Limits,
  signal: AbortSignal,
): Promise<Verdict> {
  signal.throwIfAborted()
  const asked = caseOf(body, exposed, limits)
  const here = judge(asked, HERE)
  if (here.kind !== 'heavy') return verdictOf(here)
  const answer = await threads.judge(asked, signal)
  if (answer === null || answer.kind === 'heavy') return tooHeavy()
  if (answer.kind !== 'packed') return answer
  return verdictOf({ kind: 'made', query: await unpackQuery(answer.query, () => threads.turn()) })
}

/** The same on the spot, whatever it takes. */
export function confine(body: MongoBody, exposed: Catalog, limits: Limits): Verdict {
  return judged(body, exposed, limits).verdict
}

/** As confine(), with the work that it took: twice the body takes at most about twice of it. */
export function judged(
  body: MongoBody,
  exposed: Catalog,
  limits: Limits,
): { readonly verdict: Verdict; readonly work: number } {
  let work = 0
  const found = judge(caseOf(body, exposed, limits), IN_THREAD, (spent) => {
    work = spent
  })
  return { verdict: found.kind === 'heavy' ? tooHeavy() : verdictOf(found), work }
}

function caseOf(body: MongoBody, catalog: Catalog, { rowCap }: Limits): Case {
  return { body, catalog, rowCap: Math.min(body.limit ?? rowCap, rowCap) }
}

function verdictOf(found: Exclude<Judged, { kind: 'heavy' }>): Denied | Malformed | Verdict {
  return found.kind === 'made' ? { kind: 'confined', query: seal('MONGODB', found.query) } : found
}

/** On a body that broke a thread or took it too long. */
function tooHeavy(): Denied {
  const { kind, blocked: name, message: why, hint } = refusedLimit('work', 'checking the query takes too long')
  return { kind: 'denied', blocked: { kind, name }, why, hint }
}
