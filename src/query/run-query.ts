// Runs the queries of all callers, for REST and the connector. walk() has all steps in their order. The number at the
// end of a line is the HTTP status of an error that the line may throw.
import { outcomeOf, type Audit } from '../audit/audit.ts'
import { reasonOf } from '../audit/refusal-reason.ts'
import type { Call } from '../auth/caller.ts'
import type { Config } from '../config.ts'
import { noteFailure } from '../datasources/test-datasource.ts'
import { deadlineOf, type Deadline } from '../deadline.ts'
import type { Leases } from '../datasources/connection-pool.ts'
import type { Drivers, Reached } from '../datasources/require-reach.ts'
import { overloaded } from '../datasources/changed-or-overloaded.ts'
import { notIntrospected, requireEnabled } from '../exposure/require-usable.ts'
import type { Confined } from '../drivers/confined.ts'
import type { Catalog, Denied, Driver, Limits, QueryBody, Rows, Verdict } from '../drivers/driver.ts'
import { AppError, EXPOSE_URL } from '../errors.ts'
import type { Catalogs } from '../exposure/catalog-cache.ts'
import type { AuditId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { knownOwnerOfTeam, ownerOfTeam } from '../teams/team-owner.ts'
import { knownSettings, settingsOf } from '../teams/team-settings.ts'
import type { Budget } from './budget.ts'
import { encode, rounded, type LentJson } from './encode-body.ts'
import { auditText, type QueryTrail } from './audit-text.ts'
import { limitsOf } from './query-limits.ts'
import type { QueryMarks, QueryMeter } from './query-metrics.ts'
import type { RunningQueries } from './running-queries.ts'
import { suggestionFor, type Refused } from './suggest-repair.ts'

export interface QueryDeps {
  readonly store: Store
  readonly config: Config
  readonly audit: Audit
  readonly drivers: Drivers
  readonly catalogs: Catalogs
  readonly leases: Leases
  readonly budget: Budget
  readonly running: RunningQueries
  readonly meter: QueryMeter
  /** Used only if the service listens on loopback and has no public URL. */
  readonly origin: () => string
}

/** `json` is {columns, rows, rowCount, truncated, durationMs}. */
export interface QueryAnswer {
  readonly json: string | LentJson
  readonly headers: Readonly<Record<string, string>>
  /** Present if rows are missing in the answer. */
  readonly cut?: { readonly rowCount: number; readonly by: 'rows' | 'bytes' }
}

/** `headers` are the headers of a refusal. */
interface Trail extends QueryMarks {
  query: string | null
  params: QueryBody['params'] | undefined
  printed: string | null
  tables: ReturnType<Driver['reads']> | undefined
  hasSpent: boolean
  /** True if the guard parsed the text. */
  isRead: boolean
  redacts: boolean
  headers: Readonly<Record<string, string>>
}

/**
 * Runs one query, which may only read exposed tables and columns. Throws the errors whose statuses are in walk().
 * Errors after the budget check have the headers of the budget. Every call is audited, whatever happens.
 */
export async function runQuery(deps: QueryDeps, call: Call, at: Reached, body: unknown): Promise<QueryAnswer> {
  const trail: Trail = {
    began: performance.now(),
    guardedAt: 0,
    leasedAt: 0,
    ranAt: 0,
    query: null,
    params: undefined,
    printed: null,
    tables: undefined,
    hasSpent: false,
    isRead: false,
    redacts: false,
    headers: {},
  }
  try {
    return await walk(deps, call, at, body, trail)
  } catch (error) {
    throw refused(deps, call, at, trail, error)
  } finally {
    const { began, guardedAt, leasedAt, ranAt } = trail
    if (call.trace !== undefined)
      call.trace.query = { kind: at.driver.type, began, guardedAt, leasedAt, ranAt, endedAt: performance.now() }
  }
}

async function walk(deps: QueryDeps, call: Call, at: Reached, body: unknown, trail: Trail): Promise<QueryAnswer> {
  // For speed, only promises are awaited. For most queries, that is only the step in the database.
  const exposed = knownExposed(deps, at) ?? (await exposedOf(deps, at)) // 409
  const queryBody = at.driver.read(body) // 400 INVALID_REQUEST
  const settings = knownSettings(deps.store, at.teamId) ?? (await settingsOf(deps, at.teamId))
  trail.redacts = settings.auditRedactLiterals
  trail.query = queryBody.text
  trail.params = queryBody.params
  const spent = deps.budget.spend(at.teamId, settings.queryBudget) // 429
  trail.headers = (spent instanceof Promise ? await spent : spent).headers
  trail.hasSpent = true
  if (deps.audit.behind) throw overloaded('The audit cannot keep up with the load.') // 503

  const owner = knownOwnerOfTeam(deps.store, at.teamId) ?? (await ownerOfTeam(deps.store, at.teamId))
  const limits = limitsOf(owner, settings, at.driver.type, queryBody.limit, call.rowBytesMax)
  const deadline = deadlineOf(call.signal, limits.timeoutMs)
  let running: Disposable | undefined
  let rows: Rows
  // `using` would take as long as the guard.
  try {
    running = deps.running.add(call, at, deadline) // 503; later 401, 404 or 409 if the caller loses access
    const judged = at.driver.confine(queryBody, exposed, limits, deadline.stop)
    const verdict = judged instanceof Promise ? await inTime(deadline, limits, () => judged) : judged // 503
    trail.guardedAt = performance.now()
    trail.isRead = isRead(verdict)
    if (verdict.kind === 'denied')
      throw await denied(
        { driver: at.driver, body, text: queryBody.text, denied: verdict, exposed, limits },
        deadline.signal,
      ) // 403
    const query = confinedOf(verdict) // 400 INVALID_QUERY
    trail.printed = at.driver.printed(query)
    trail.tables = at.driver.reads(query)
    rows = await run(deps, at, query, limits, deadline, trail) // 403 (cost), 409, 422, 502, 503, 504
  } finally {
    running?.[Symbol.dispose]()
    deadline[Symbol.dispose]()
  }

  const endedAt = performance.now()
  const durationMs = endedAt - trail.began
  const json = encode(rows, durationMs)
  const { rowCount } = rows
  const bytes = typeof json === 'string' ? Buffer.byteLength(json) : json.byteLength
  deps.meter.answered(at.driver.type, trail, endedAt, rowCount, bytes)
  const about = aboutOf(at, trail)
  deps.audit.record(call, { ...about, rowCount, bytes, durationMs: rounded(durationMs), outcome: 'ANSWERED' })
  const answer = { json, headers: trail.headers }
  return rows.truncated ? { ...answer, cut: cutOf(rows, limits) } : answer
}

function cutOf({ rowCount }: Rows, { rowCap }: Limits): NonNullable<QueryAnswer['cut']> {
  return { rowCount, by: rowCount < rowCap ? 'bytes' : 'rows' }
}

/** Returns the exposed catalog. Throws DATASOURCE_DISABLED, NOT_CONNECTED. */
export async function exposedOf(deps: Pick<QueryDeps, 'catalogs'>, at: Reached): Promise<Catalog> {
  requireEnabled(at.row)
  const exposed = await deps.catalogs.exposed(at.row)
  if (exposed === null) throw notIntrospected()
  return exposed
}

/** Like exposedOf(), but without waiting. Undefined if the catalog is not in memory or the datasource is disabled. */
function knownExposed(deps: Pick<QueryDeps, 'catalogs'>, { row }: Reached): Catalog | undefined {
  return row.status === 'DISABLED' ? undefined : deps.catalogs.knownExposed(row)
}

/** A query that exceeds a limit may be refused before it is parsed. */
export function isRead(verdict: Verdict): boolean {
  return verdict.kind === 'confined' || (verdict.kind === 'denied' && verdict.blocked.kind !== 'limit')
}

/** Adds a repaired query as a suggestion, if one was found. */
async function denied(refused: Refused, signal: AbortSignal): Promise<AppError> {
  const { blocked, hint, position, why } = refused.denied
  const suggestion = await suggestionFor(refused, signal)
  return new AppError('QUERY_DENIED', why, { extra: { blocked, hint, position, suggestion } })
}

/** Throws INVALID_QUERY if the query cannot be parsed. */
function confinedOf(verdict: Exclude<Verdict, Denied>): Confined {
  switch (verdict.kind) {
    case 'confined':
      return verdict.query
    case 'malformed':
      throw new AppError('INVALID_QUERY', verdict.why, { extra: { hint: verdict.hint, position: verdict.position } })
    default:
      return verdict satisfies never
  }
}

/**
 * Runs a step before the query is sent. Throws OVERLOADED if the deadline passes, because the query never ran. The
 * caller should retry after another such time.
 */
export async function inTime<T>(deadline: Deadline, { timeoutMs }: Limits, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (deadline.timedOut && !(error instanceof AppError)) {
      const retryAfter = Math.ceil(timeoutMs / 1_000)
      throw overloaded('The query could not be checked in time: it is long, or the service is busy.', retryAfter)
    }
    throw error
  }
}

async function run(
  deps: QueryDeps,
  at: Reached,
  query: Confined,
  limits: Limits,
  deadline: Deadline,
  marks: QueryMarks,
): Promise<Rows> {
  try {
    const idle = deadline.stop.aborted ? null : deps.leases.takeIdle(at)
    const lease = idle ?? (await deps.leases.take(at, deadline.signal, limits.timeoutMs))
    marks.leasedAt = performance.now()
    try {
      const rows = await lease.connection.run(query, limits, deadline.stop)
      marks.ranAt = performance.now()
      return rows
    } finally {
      lease.release()
    }
  } catch (error) {
    if (deadline.ended !== null) throw deadline.ended
    if (deadline.timedOut && !(error instanceof AppError)) throw timedOut(limits, error)
    await noteFailure(deps, at, error)
    throw error
  }
}

/**
 * Records the refusal in the audit and returns the error with its headers. A caller can repeat a refusal that spent no
 * budget without limit, so one row counts such refusals of a minute.
 */
function refused(deps: QueryDeps, call: Call, at: Reached, trail: Trail, error: unknown): unknown {
  const code = error instanceof AppError ? error.code : 'INTERNAL'
  const durationMs = rounded(performance.now() - trail.began)
  const { blocked, ...reason } = reasonOf(error)
  const about = { ...aboutOf(at, { ...trail, blocked, refusal: { code, reason } }), durationMs }
  const record: Audit['record'] = (...row) => (trail.hasSpent ? deps.audit.record(...row) : deps.audit.folded(...row))
  const isGone = call.signal.aborted
  const kind = code === 'QUERY_DENIED' && blocked !== undefined ? blocked.kind : null
  deps.meter.refused(at.driver.type, trail, isGone ? null : code, kind)
  if (isGone) {
    // The caller has disconnected and gets no code.
    record(call, { ...about, outcome: 'FAILED' })
    return error
  }
  const id = record(call, { ...about, outcome: outcomeOf(code), code })
  if (!(error instanceof AppError)) return error
  const url = isExposable(error, blocked) ? exposeUrl(deps, at, id) : null
  return error.withHeaders({ ...trail.headers, ...(url !== null && { [EXPOSE_URL]: url }) })
}

/** Also true for a name that does not exist, because the answer must not reveal whether a hidden name exists. */
function isExposable({ code }: AppError, blocked: ReturnType<typeof reasonOf>['blocked']): boolean {
  return code === 'QUERY_DENIED' && (blocked?.kind === 'table' || blocked?.kind === 'column')
}

/**
 * A manager can expose the refused object at this URL, which has only ids. Null if the service has no known address.
 */
function exposeUrl({ config, origin }: QueryDeps, { teamId, id }: Reached, auditId: AuditId): string | null {
  const own = config.publicUrl ?? (config.loopback ? origin() : null)
  return own === null ? null : `${own}/app/t/${teamId}/datasources/${id}/exposure?from=${auditId}`
}

function aboutOf(at: Reached, trail: Trail & QueryTrail) {
  return { ...auditText(at.driver, trail, trail.redacts), teamId: at.teamId, datasourceId: at.id }
}

function timedOut(limits: Limits, cause: unknown): AppError {
  return new AppError(
    'QUERY_TIMEOUT',
    `The query took longer than the ${limits.timeoutMs} ms the team allows. Read fewer rows: filter by an indexed column, or aggregate less.`,
    {
      cause,
    },
  )
}
