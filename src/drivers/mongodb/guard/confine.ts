// The entry of the MongoDB guard: a body and an exposure become one confined query or a refusal. The guard uses no
// server, no client library and no clock, and refuses everything that it does not understand.
import { seal } from '../../confined.ts'
import { signalOf, type Stop } from '../../stop.ts'
import { NOBODY, type Catalog, type Denied, type Limits, type Malformed, type Verdict } from '../../driver.ts'
import { HERE, IN_THREAD, judge, type Case, type Judged } from './judge.ts'
import type { MongoBody } from './body/read-body.ts'
import { refusedLimit } from './refusals/refusal.ts'
import { recall, remember, shapeOf } from './shape-cache.ts'
import { unpackQuery, type PackedQuery } from './query-transfer.ts'

export type Answer = Exclude<Judged, { kind: 'made' }> | { readonly kind: 'packed'; readonly query: PackedQuery }

/** The threads are passed in, because the guard does no I/O (judge-threads.ts). */
export interface Threads {
  /**
   * Returns null if no thread could judge the body. Throws OVERLOADED if too many bodies of the owner wait. Throws the
   * reason of the signal if it aborts.
   */
  judge(asked: Case, signal: AbortSignal): Promise<Answer | null>
  turn(): Promise<void>
}

/**
 * Judges a body of a few milliseconds on this thread, and any other body in a guard thread. The sealed value is a
 * MongoQuery. If the signal aborts, throws or rejects.
 */
export function confineAside(
  threads: Threads,
  body: MongoBody,
  exposed: Catalog,
  limits: Limits,
  stop: Stop,
): Verdict | Promise<Verdict> {
  stop.throwIfAborted()
  const asked = caseOf(body, exposed, limits)
  const shape = shapeOf(body, asked.rowCap)
  const known = shape === null ? null : recall(exposed, shape)
  if (known !== null) return verdictOf({ kind: 'made', query: known })
  const here = judge(asked, HERE)
  if (here.kind === 'heavy') return inThread(threads, asked, signalOf(stop))
  if (here.kind === 'made' && shape !== null)
    remember(exposed, shape, body, here.query, (marked) => judge({ ...asked, body: marked }, HERE))
  return verdictOf(here)
}

async function inThread(threads: Threads, asked: Case, signal: AbortSignal): Promise<Verdict> {
  const answer = await threads.judge(asked, signal)
  if (answer === null || answer.kind === 'heavy') return tooHeavy()
  if (answer.kind !== 'packed') return answer
  return verdictOf({ kind: 'made', query: await unpackQuery(answer.query, () => threads.turn()) })
}

/** Works on this thread, however long it takes. */
export function confine(body: MongoBody, exposed: Catalog, limits: Limits): Verdict {
  return judged(body, exposed, limits).verdict
}

/**
 * Like confine(), but also returns the work that the guard has done. The work grows about linearly with the size of the
 * body.
 */
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

function caseOf(body: MongoBody, catalog: Catalog, { rowCap, owner = NOBODY }: Limits): Case {
  return { body, catalog, rowCap: Math.min(body.limit ?? rowCap, rowCap), owner }
}

function verdictOf(found: Exclude<Judged, { kind: 'heavy' }>): Denied | Malformed | Verdict {
  return found.kind === 'made' ? { kind: 'confined', query: seal('MONGODB', found.query) } : found
}

/** The body crashed a thread, or exceeded the thread's deadline. */
function tooHeavy(): Denied {
  const { kind, blocked: name, message: why, hint } = refusedLimit('work', 'checking the query takes too long')
  return { kind: 'denied', blocked: { kind, name }, why, hint }
}
