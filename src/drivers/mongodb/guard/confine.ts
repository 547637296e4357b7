// Turns a body and an exposure into one confined query or a refusal. This is the entry of the MongoDB guard. It
// uses no server, no client library and no clock, and it refuses everything that it does not understand.
import { seal } from '../../confined.ts'
import { signalOf, type Stop } from '../../stop.ts'
import type { Catalog, Denied, Limits, Malformed, Verdict } from '../../driver.ts'
import { HERE, IN_THREAD, judge, type Case, type Judged } from './judge.ts'
import type { MongoBody } from './body/read-body.ts'
import { refusedLimit } from './refusals/refusal.ts'
import { recall, remember, shapeOf } from './shape-cache.ts'
import { unpackQuery, type PackedQuery } from './query-transfer.ts'

/** The answer of a guard thread. */
export type Answer = Exclude<Judged, { kind: 'made' }> | { readonly kind: 'packed'; readonly query: PackedQuery }

/** The guard threads. The caller passes them in, because the guard does no I/O. See judge-threads.ts. */
export interface Threads {
  /**
   * Returns null if no thread could judge the body. Rejects only with the reason of the signal, if the signal is
   * aborted.
   */
  judge(asked: Case, signal: AbortSignal): Promise<Answer | null>
  /** Yields to the event loop. */
  turn(): Promise<void>
}

/**
 * Confines one query to the exposed catalog: on this thread if that takes a few milliseconds, otherwise in a guard
 * thread. The sealed value is a MongoQuery. Throws or rejects if the signal is aborted.
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

/** Confines a query on this thread, however long the work takes. */
export function confine(body: MongoBody, exposed: Catalog, limits: Limits): Verdict {
  return judged(body, exposed, limits).verdict
}

/**
 * Confines a query like confine(), and also returns the work spent. The work grows about linearly with the size of the
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

function caseOf(body: MongoBody, catalog: Catalog, { rowCap }: Limits): Case {
  return { body, catalog, rowCap: Math.min(body.limit ?? rowCap, rowCap) }
}

function verdictOf(found: Exclude<Judged, { kind: 'heavy' }>): Denied | Malformed | Verdict {
  return found.kind === 'made' ? { kind: 'confined', query: seal('MONGODB', found.query) } : found
}

/** Returns the refusal of a body that crashed a thread or exceeded the thread's deadline. */
function tooHeavy(): Denied {
  const { kind, blocked: name, message: why, hint } = refusedLimit('work', 'checking the query takes too long')
  return { kind: 'denied', blocked: { kind, name }, why, hint }
}
