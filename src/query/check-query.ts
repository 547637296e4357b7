// Checks whether a query would be allowed, without running it. The steps are those of runQuery(), but no budget is
// spent, and the result has an estimated cost instead of rows. It never shows more than the caller can reach.
import { outcomeOf } from '../audit/audit.ts'
import { reasonOf } from '../audit/refusal-reason.ts'
import type { Call } from '../auth/caller.ts'
import { deadlineOf, type Deadline } from '../deadline.ts'
import { noteFailure } from '../datasources/test-datasource.ts'
import { As, barredAs } from '../datasources/reach-as-role-or-key.ts'
import type { Reached } from '../datasources/require-reach.ts'
import type { Confined } from '../drivers/confined.ts'
import type { Blocked, Limits } from '../drivers/driver.ts'
import type { DatasourceType } from '../drivers/datasource-type.ts'
import { AppError, invalidRequest } from '../errors.ts'
import { ownerOfTeam } from '../teams/team-owner.ts'
import { settingsOf, type TeamSettings } from '../teams/team-settings.ts'
import { auditText, type QueryTrail } from './audit-text.ts'
import type { Drafts } from './check-rate-limit.ts'
import { limitsOf } from './query-limits.ts'
import { exposedOf, inTime, isRead, type QueryDeps } from './run-query.ts'

export interface CheckResult {
  readonly verdict: 'ALLOWED' | 'DENIED' | 'INVALID'
  /** For refusals by the guard (Driver.confine()), runQuery() gives the same reason. */
  readonly error?: string
  readonly blocked?: Blocked
  readonly hint?: string
  readonly position?: number
  /** The text that would be sent to the database. */
  readonly printed?: string
  /** The estimated cost, in the unit COST_UNIT of the datasource type. */
  readonly estimate?: number
}

export type CheckDeps = Omit<QueryDeps, 'budget'> & { readonly drafts: Drafts }

/**
 * Checks the query in `body`. With `as`, checks it for another role, or for a key of the caller. With `draft`, the user
 * is still typing: a session may check ten drafts per second (429), and the audit counts drafts without their text.
 * Throws the errors of runQuery(), except INVALID_QUERY and QUERY_DENIED, which it returns.
 */
export async function checkQuery(deps: CheckDeps, call: Call, at: Reached, body: unknown): Promise<CheckResult> {
  const place = { teamId: at.teamId, datasourceId: at.id }
  const isDraft = typeof body === 'object' && body !== null && 'draft' in body && body.draft === true
  const trail: Trail = { query: null, params: undefined, printed: null, tables: undefined, isRead: false }
  const about = async (refusal: QueryTrail['refusal'], blocked: Blocked | undefined) => {
    const { auditRedactLiterals } = await settingsOf(deps, at.teamId)
    return { ...place, ...auditText(at.driver, { ...trail, refusal, blocked }, auditRedactLiterals) }
  }
  try {
    const result = await walk(deps, call, at, body, trail)
    if (isDraft) {
      deps.audit.folded(call, { ...place, outcome: 'ANSWERED' })
      return result
    }
    deps.audit.record(call, { ...(await about(refusalOf(result), result.blocked)), outcome: 'ANSWERED' })
    return result
  } catch (error) {
    const { blocked, ...reason } = reasonOf(error)
    const code = error instanceof AppError ? error.code : 'INTERNAL'
    const outcome = outcomeOf(code)
    if (isDraft) deps.audit.folded(call, { ...place, outcome, code })
    else deps.audit.record(call, { ...(await about({ code, reason }, blocked)), outcome, code })
    throw error
  }
}

type Trail = { -readonly [K in 'query' | 'params' | 'printed' | 'tables' | 'isRead']: QueryTrail[K] }

/** Returns the error that runQuery() would throw for this query, or null. */
function refusalOf({ verdict, error, hint, position, estimate }: CheckResult): QueryTrail['refusal'] {
  if (verdict === 'ALLOWED') return null
  return { code: verdict === 'INVALID' ? 'INVALID_QUERY' : 'QUERY_DENIED', reason: { error, hint, position, estimate } }
}

async function walk(deps: CheckDeps, call: Call, at: Reached, body: unknown, trail: Trail): Promise<CheckResult> {
  const exposed = await exposedOf(deps, at)
  const { as, draft, fields } = split(body)
  const queryBody = at.driver.read(fields)
  trail.query = queryBody.text
  trail.params = queryBody.params
  if (draft) deps.drafts.spend(call.caller)
  const barred = as === undefined ? null : await barredAs(deps, call, at, as, 'data:read')
  if (barred !== null)
    return { verdict: 'DENIED', error: barred, hint: 'Check as a role or a key that can reach this datasource.' }

  const settings: TeamSettings = await settingsOf(deps, at.teamId)
  const owner = await ownerOfTeam(deps.store, at.teamId)
  const limits = limitsOf(owner, settings, at.driver.type, queryBody.limit)
  using deadline = deadlineOf(call.signal, limits.timeoutMs)
  using _running = deps.running.add(call, at, deadline)
  const verdict = await inTime(deadline, limits, async () =>
    at.driver.confine(queryBody, exposed, limits, deadline.signal),
  )
  trail.isRead = isRead(verdict)
  switch (verdict.kind) {
    case 'malformed':
      return { verdict: 'INVALID', error: verdict.why, ...hintOf(verdict), ...positionOf(verdict) }
    case 'denied': {
      const { why, blocked, hint } = verdict
      return { verdict: 'DENIED', error: why, blocked, hint, ...positionOf(verdict) }
    }
    case 'confined':
      trail.printed = at.driver.printed(verdict.query)
      trail.tables = at.driver.reads(verdict.query)
      return await weigh(deps, at, verdict.query, limits, deadline)
    default:
      return verdict satisfies never
  }
}

/** The unit of the cost, in the words of runQuery()'s refusals. */
const COST_UNIT = {
  POSTGRES: 'plan cost',
  MONGODB: 'scanned documents',
  BIGQUERY: 'bytes processed',
} as const satisfies Record<DatasourceType, string>

async function weigh(
  deps: CheckDeps,
  at: Reached,
  query: Confined,
  limits: Limits,
  deadline: Deadline,
): Promise<CheckResult> {
  const { signal } = deadline
  const printed = at.driver.printed(query)
  try {
    await using lease = await inTime(deadline, limits, () => deps.leases.take(at, signal))
    const { cost } = await lease.connection.estimate(query, limits, signal)
    if (cost <= limits.maxCost) return { verdict: 'ALLOWED', printed, estimate: cost }
    const error = `The cost of this query is estimated at ${Math.round(cost)}, over the limit of ${limits.maxCost}.`
    const hint = 'Read less: use a narrower condition or fewer joins.'
    return {
      verdict: 'DENIED',
      error,
      blocked: { kind: 'cost', name: COST_UNIT[at.driver.type] },
      hint,
      printed,
      estimate: cost,
    }
  } catch (error) {
    if (deadline.ended !== null) throw deadline.ended
    const refusal = refusedAs(error)
    if (refusal !== null) return { ...refusal, printed }
    await noteFailure(deps, at, error)
    throw error
  }
}

/** Null for errors that the query did not cause, such as a lost connection. */
function refusedAs(error: unknown): CheckResult | null {
  if (!(error instanceof AppError)) return null
  if (error.code === 'INVALID_QUERY') return { verdict: 'INVALID', error: error.message }
  if (error.code !== 'QUERY_DENIED') return null
  const { blocked, hint, position, estimate } = reasonOf(error)
  return {
    verdict: 'DENIED',
    error: error.message,
    ...(blocked !== undefined && { blocked }),
    ...(hint !== undefined && { hint }),
    ...positionOf({ position }),
    ...(estimate !== undefined && { estimate }),
  }
}

function split(body: unknown): { readonly as: As | undefined; readonly draft: boolean; readonly fields: unknown } {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return { as: undefined, draft: false, fields: body }
  }
  const { as, draft, ...fields }: { readonly as?: unknown; readonly draft?: unknown } = body
  const read = As.optional().safeParse(as)
  const wrong = [
    ...(read.success ? [] : ['as: must be {role} or {keyId}']),
    ...(draft === undefined || typeof draft === 'boolean' ? [] : ['draft: must be true or false']),
  ]
  if (wrong.length > 0) throw invalidRequest(wrong)
  return { as: read.data, draft: draft === true, fields }
}

function hintOf({ hint }: { readonly hint?: string | undefined }): { readonly hint?: string } {
  return hint === undefined ? {} : { hint }
}

function positionOf(verdict: { readonly position?: number | undefined }): { readonly position?: number } {
  return verdict.position === undefined ? {} : { position: verdict.position }
}
