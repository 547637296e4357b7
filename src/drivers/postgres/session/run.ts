// Runs confined queries. Each has its own READ ONLY transaction, which checks the cost before it reads rows. Usually,
// one write to the socket contains all of it. If the cost needs EXPLAIN, there are two writes.
import type { Estimate, Limits, Rows } from '../../driver.ts'
import { AppError } from '../../../errors.ts'
import {
  checkCost,
  costBound,
  explainSql,
  isNoLongerPlain,
  plainCheckSql,
  planCost,
  readSize,
  sizeSql,
  type TableSize,
} from './estimate.ts'
import { failure, schemaStale, timedOut, type FailedQuery } from './failure.ts'
import type { ImplicitObjects } from '../captured-facts.ts'
import { implicitCheckSql, isImplicitChange } from '../catalog/implicit-objects.ts'
import type { JsonBytes } from '../../json-bytes.ts'
import { question, statement, type DatabaseError } from './protocol-messages.ts'
import type { Captured, PostgresQuery } from '../confined-query.ts'
import { Result, Texts } from './result.ts'
import type { Pinned, Session } from './session.ts'
import { lookUpSql, type TypeBook } from './result-types.ts'
import type { Sink } from './wire.ts'

/** Facts that the connections of one datasource share. */
export interface Known {
  readonly types: TypeBook
  readonly sizes: Map<string, { readonly size: TableSize | null; readonly at: number }>
  /** For each table whose size bounds the cost: when it was last checked. */
  readonly plain: Pick<Map<string, Checked>, 'get' | 'set' | 'clear'>
  /** The last digest of implicit objects that was checked, and when. */
  implicit: ({ readonly digest: string } & Checked) | null
}

/** When a check was last done, and when a query last began to repeat it. */
interface Checked {
  readonly at: number
  renewedAt: number
}

export interface Running {
  readonly session: Session
  readonly known: Known
}

/** A check of the implicit objects or of a table is valid for this time. */
const CHECK_MS = 1_000
/** When a check is this old, one query repeats it. Meanwhile, other queries rely on the old check. */
const RENEW_MS = 900
const SIZE_MS = 180_000
const SIZES_MAX = 1_000
const PLAN_BYTES = 32 * 1024 * 1024

/** Runs a query and writes its rows into `out`. Throws the AppErrors that Connection.run() documents. */
export async function runQuery(at: Running, query: PostgresQuery, limits: Limits, out: JsonBytes): Promise<Rows> {
  sameServer(at.session, query)
  const pinned = { searchPath: query.searchPath, timeoutMs: limits.timeoutMs, switchedOff: query.switchedOff }
  const caps = { rowCap: query.rowCap, bytesMax: limits.maxResponseBytes }
  const result = new Result(caps, at.known.types, out, query.records)
  const started = performance.now()
  const bounded = knownBound(at.known, query)
  const isBounded = bounded !== null && bounded <= limits.maxCost
  if (!isBounded || !(await runBounded(at, query, pinned, result, started))) {
    const cost = await explain(at, query, pinned, started)
    if (cost > limits.maxCost) await at.session.end(pinned)
    checkCost(cost, limits.maxCost)
    const outcome = await at.session.runExplained(query, pinned, result)
    if (outcome.error !== null) throw await explained(query, pinned, outcome.error, started)
  }
  if (result.unknown.length > 0) {
    await lookUp(at, result.unknown, limits.timeoutMs)
    await result.writeHeld()
  }
  return result.finish()
}

/** Runs a query whose table bounds its cost by its size. Returns false if the size no longer does. */
async function runBounded(
  { session, known }: Running,
  query: PostgresQuery,
  pinned: Pinned,
  result: Result,
  started: number,
): Promise<boolean> {
  const check = both(implicitCheck(known, query.implicit, started), tableCheck(known, query, started))
  const { error, isStale } = await session.query(query, check, pinned, result)
  if (isStale) throw schemaStale(error)
  if (error === null) {
    check.passed()
    return true
  }
  if (query.bound === null || !isNoLongerPlain(error.message)) throw await explained(query, pinned, error, started)
  known.sizes.delete(sizeKey(query.bound))
  return false
}

/** Returns the cost by EXPLAIN, without running the query. Throws the same errors as runQuery(). */
export async function estimateQuery(at: Running, query: PostgresQuery, limits: Limits): Promise<Estimate> {
  sameServer(at.session, query)
  const pinned = { searchPath: query.searchPath, timeoutMs: limits.timeoutMs, switchedOff: query.switchedOff }
  const cost = await explain(at, query, pinned, performance.now())
  await at.session.end(pinned)
  return { cost }
}

/** Runs a query that the service itself writes. Returns its rows as strings. Throws LostConnection or DatabaseError. */
export async function ask(session: Session, sql: string, timeoutMs: number): Promise<(string | null)[][]> {
  const texts = new Texts(512 * 1024 * 1024)
  const outcome = await session.transaction(question(sql), { searchPath: [], timeoutMs }, texts)
  if (outcome.error !== null) throw outcome.error
  if (outcome.cut) throw new AppError('QUERY_FAILED', 'The catalog of this database is too large to read.')
  return texts.answers[0] ?? []
}

/**
 * Runs a statement that the service itself writes, and writes the rows of its one table into `sink`. Throws AppError,
 * for example if the table has changed since introspection.
 */
export async function readInto(
  { session, known }: Running,
  sql: string,
  { reads, implicit }: Captured,
  timeoutMs: number,
  sink: Sink,
): Promise<void> {
  const check = implicitCheck(known, implicit, performance.now())
  const frames = Buffer.concat([check.frames, question(sql)])
  const { error, cut, isStale } = await session.transaction(frames, { searchPath: [], timeoutMs }, sink, reads)
  if (isStale || (error !== null && isImplicitChange(error.message))) throw schemaStale(error)
  if (cut) throw new AppError('QUERY_FAILED', 'The database answered more than was asked for.')
  if (error === null) return check.passed()
  if (error.code === '57014') throw timedOut(error)
  if (['42P01', '42703', '3F000'].includes(error.code) && !error.inner) throw schemaStale(error)
  throw failure(error)
}

/** Throws if the server's major version has changed since introspection: functions, casts and types may differ. */
function sameServer(session: Session, query: PostgresQuery): void {
  const major = (version: number): number => Math.floor(version / 10_000)
  if (major(session.server.version) !== major(query.serverVersion)) {
    throw new AppError(
      'SCHEMA_STALE',
      'The database server has another version than at introspection. An administrator must introspect it again.',
    )
  }
}

/** Statements that fail if something has changed. The query after them then does not run. */
interface Check {
  readonly frames: Buffer
  readonly count: number
  /** Call this after the server has answered the frames without an error. */
  passed(): void
}

const NOTHING = Buffer.alloc(0)
const NO_CHECK: Check = { frames: NOTHING, count: 0, passed: () => undefined }

function both(one: Check, other: Check): Check {
  if (one.count === 0) return other
  if (other.count === 0) return one
  return {
    frames: Buffer.concat([one.frames, other.frames]),
    count: one.count + other.count,
    passed: () => {
      one.passed()
      other.passed()
    },
  }
}

/**
 * Returns a statement that fails if an implicit object has changed since introspection. It takes one or two
 * milliseconds, so the connections of a datasource share its result, and one query repeats it about every 0.9 s.
 */
function implicitCheck(known: Known, objects: ImplicitObjects, now: number): Check {
  const { digest } = objects
  const last = known.implicit
  if (last?.digest === digest && !isDue(last, now)) return NO_CHECK
  return {
    frames: statement(implicitCheckSql(objects)),
    count: 1,
    passed: () => {
      known.implicit = { digest, at: now, renewedAt: now }
    },
  }
}

/**
 * Returns a statement that fails if the size of the table no longer bounds the cost, for example because of row-level
 * security, whose policies run code in the session. Connections share the result, as in implicitCheck().
 */
function tableCheck(known: Known, { bound }: PostgresQuery, now: number): Check {
  if (bound === null) return NO_CHECK
  const key = sizeKey(bound)
  const last = known.plain.get(key)
  if (last !== undefined && !isDue(last, now)) return NO_CHECK
  return {
    frames: statement(plainCheckSql(bound)),
    count: 1,
    passed: () => void known.plain.set(key, { at: now, renewedAt: now }),
  }
}

/** Returns whether this query must check. If so, others need not check while the last check is valid. */
function isDue(last: Checked, now: number): boolean {
  const isValid = now - last.at < CHECK_MS
  if (isValid && now - last.renewedAt < RENEW_MS) return false
  if (isValid) last.renewedAt = now
  return true
}

function knownBound(known: Known, query: PostgresQuery): number | null {
  if (query.bound === null) return null
  const entry = known.sizes.get(sizeKey(query.bound))
  if (entry === undefined || entry.size === null || performance.now() - entry.at > SIZE_MS) return null
  return costBound(query.bound, entry.size)
}

function sizeKey(at: { readonly schema: string; readonly table: string }): string {
  return `${at.schema}\0${at.table}`
}

/** Opens the transaction with EXPLAIN. Also reads the size of the table, which may save the next EXPLAIN. */
async function explain(at: Running, query: PostgresQuery, pinned: Pinned, started: number): Promise<number> {
  const { session, known } = at
  const plan = new Texts(PLAN_BYTES)
  const now = performance.now()
  const check = implicitCheck(known, query.implicit, now)
  const size = query.bound === null ? NOTHING : question(sizeSql(query.bound))
  const outcome = await session.explain(query, check.frames, size, pinned, plan)
  if (outcome.unexpected) throw schemaStale()
  if (outcome.error !== null) {
    if (session.wire.usable) await session.end(pinned)
    if (outcome.isStale) throw schemaStale(outcome.error)
    throw await explained(query, pinned, outcome.error, started, session.plansOnce(query) ? 0 : explainSql('').length)
  }
  if (outcome.cut) throw planTooLarge()
  check.passed()
  // Count from the end, because a first attempt that failed left answers without rows at the beginning.
  const [explanation = [], measured = []] = plan.answers.slice(query.bound === null ? -1 : -2)
  if (query.bound !== null) keepSize(known, query.bound, readSize(measured), now)
  try {
    return planCost(explanation)
  } catch (cause) {
    // Only a statement that is no query has no plan, for example COMMIT.
    await session.end(pinned)
    throw new AppError('QUERY_FAILED', 'The database has no plan for this query.', { cause })
  }
}

/** Returns the error for a plan of tens of megabytes, which only joins of very many partitions have. */
function planTooLarge(): AppError {
  const extra = { blocked: { kind: 'limit', name: 'plan' }, hint: 'Join fewer tables or partitions.' }
  return new AppError('QUERY_DENIED', 'The plan of this query is too large.', { extra })
}

/** `now` is a time before the server read the size. */
function keepSize(
  known: Known,
  at: { readonly schema: string; readonly table: string },
  size: TableSize | null,
  now: number,
): void {
  if (known.sizes.size >= SIZES_MAX) {
    known.sizes.clear()
    known.plain.clear()
  }
  known.sizes.set(sizeKey(at), { size, at: now })
  if (size !== null) known.plain.set(sizeKey(at), { at: now, renewedAt: now })
}

async function lookUp(at: Running, oids: readonly number[], timeoutMs: number): Promise<void> {
  at.known.types.learn(oids, await ask(at.session, lookUpSql(oids), timeoutMs))
}

/** Returns the caller's error for a database error. `ahead`: how many characters were sent before the printed text. */
async function explained(
  query: PostgresQuery,
  pinned: Pinned,
  error: DatabaseError,
  started: number,
  ahead = 0,
): Promise<AppError> {
  if (isImplicitChange(error.message)) return schemaStale(error)
  if (error.code === '57014' && performance.now() - started > pinned.timeoutMs * 0.9) return timedOut(error)
  // The guard found every name in the captured catalog. So an unknown name was dropped or renamed since introspection,
  // unless it is inside the function of a view (`inner`).
  const unknownName = error.code === '42P01' || error.code === '42703' || error.code === '3F000'
  if (unknownName && !error.inner) return schemaStale(error)
  return failure(error, query satisfies FailedQuery, await placeOf(query, error, ahead))
}

/** Returns the position of the error in the caller's text, or null if it has none. */
async function placeOf(query: PostgresQuery, error: DatabaseError, ahead: number): Promise<number | null> {
  if (error.position === null || error.inner || query.locate === undefined) return null
  return query.locate(error.position - ahead).catch(() => null)
}
