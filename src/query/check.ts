// Would this run? The same reach, the same body, the same guard as a query, then an estimate instead of rows. It spends
// no budget, reads no row, and never answers for more than its caller reaches.
import { z } from 'zod'
import { holds, mayEnter, type Call } from '../auth/caller.ts'
import { callerOf } from '../auth/find-key.ts'
import { deadlineOf, type Deadline } from '../datasources/deadline.ts'
import { noteFailure } from '../datasources/connect.ts'
import { isWithin, reach, reaches, type Reached } from '../datasources/reach.ts'
import type { Confined } from '../drivers/confined.ts'
import type { Blocked, DatasourceType, Limits, Verdict } from '../drivers/driver.ts'
import { AppError, invalidRequest, notFound } from '../errors.ts'
import { asId, type ApiKeyId, type DatasourceId, type TeamId } from '../ids.ts'
import { roleAtLeast } from '../teams/access.ts'
import { roleRequired } from '../teams/belong.ts'
import { settingsOf, type TeamSettings } from '../teams/settings.ts'
import { blockedOf, keptOf } from './kept.ts'
import { limitsOf } from './limits.ts'
import { exposedOf, isRead, type QueryDeps } from './run-query.ts'

export interface CheckResult {
  readonly verdict: 'ALLOWED' | 'DENIED' | 'INVALID'
  /** Why not, as a query would be told. */
  readonly error?: string
  readonly blocked?: Blocked
  readonly hint?: string
  readonly position?: number
  /** The text the database would be sent. */
  readonly printed?: string
  /** In the units of the kind's cost limit. */
  readonly estimate?: number
}

export type CheckDeps = Omit<QueryDeps, 'budget'>

const As = z.union([
  z.strictObject({ role: z.enum(['OWNER', 'ADMIN', 'MEMBER']) }),
  z.strictObject({ keyId: z.string().max(200) }),
])
type As = z.infer<typeof As>

/** A query body with `as?: {role} or {keyId of one's own}` beside its fields. Throws as a query does, but for verdicts. */
export async function checkQuery(
  deps: CheckDeps,
  call: Call,
  teamId: TeamId,
  id: DatasourceId,
  body: unknown,
): Promise<CheckResult> {
  const at = await reach(deps, call, teamId, id)
  const place = { teamId, datasourceId: id }
  try {
    const { result, query, isRead } = await walk(deps, call, at, body)
    const { printed = null, blocked } = result
    const { auditRedactLiterals } = await settingsOf(deps, teamId)
    const kept = keptOf(at.driver, { query, printed, isRead, blocked }, auditRedactLiterals)
    deps.audit.record(call, { ...place, outcome: 'ANSWERED', ...kept })
    return result
  } catch (error) {
    deps.audit.refused(call, place, error)
    throw error
  }
}

interface Walked {
  readonly result: CheckResult
  readonly query: string
  readonly isRead: boolean
}

async function walk(deps: CheckDeps, call: Call, at: Reached, body: unknown): Promise<Walked> {
  const exposed = await exposedOf(deps, at)
  const { as, fields } = split(body)
  const asked = at.driver.read(fields)
  const answered = (result: CheckResult, of?: Verdict) => ({
    result,
    query: asked.text,
    isRead: of !== undefined && isRead(of),
  })
  const barred = as === undefined ? null : await barredAs(deps, call, at, as)
  if (barred !== null) return answered({ verdict: 'DENIED', error: barred, hint: 'Ask as somebody who reaches it.' })

  const settings: TeamSettings = await settingsOf(deps, at.teamId)
  const limits = limitsOf(settings, at.driver.type, asked.limit)
  using deadline = deadlineOf(call.signal, limits.timeoutMs)
  using _running = deps.running.add(call, at, deadline)
  const verdict = await at.driver.confine(asked, exposed, limits, deadline.signal)
  switch (verdict.kind) {
    case 'malformed':
      return answered({ verdict: 'INVALID', error: verdict.why, ...positionOf(verdict) })
    case 'denied': {
      const { why, blocked, hint } = verdict
      return answered({ verdict: 'DENIED', error: why, blocked, hint, ...positionOf(verdict) }, verdict)
    }
    case 'confined':
      return answered(await weigh(deps, at, verdict.query, limits, deadline), verdict)
    default:
      return verdict satisfies never
  }
}

/** What is counted, in the words of a query's refusal. */
const COST = {
  POSTGRES: 'plan cost',
  MONGODB: 'scanned documents',
  BIGQUERY: 'bytes processed',
} as const satisfies Record<DatasourceType, string>

/** What it would cost, and whether that is too much. */
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
    await using lease = await deps.leases.take(at, signal)
    const { cost } = await lease.connection.estimate(query, limits, signal)
    if (cost <= limits.maxCost) return { verdict: 'ALLOWED', printed, estimate: cost }
    const error = `The cost of this query is estimated at ${Math.round(cost)}, over the limit of ${limits.maxCost}.`
    const hint = 'Read less: a narrower condition, fewer joins.'
    return {
      verdict: 'DENIED',
      error,
      blocked: { kind: 'cost', name: COST[at.driver.type] },
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

/** What the database's own look at a query is a verdict on: a column that only it can miss, say. Null for a failure. */
function refusedAs(error: unknown): CheckResult | null {
  if (!(error instanceof AppError)) return null
  if (error.code === 'INVALID_QUERY') return { verdict: 'INVALID', error: error.message }
  if (error.code !== 'QUERY_DENIED') return null
  const { hint, estimate } = error.extra
  const blocked = blockedOf(error)
  return {
    verdict: 'DENIED',
    error: error.message,
    ...(blocked !== undefined && { blocked }),
    ...(typeof hint === 'string' && { hint }),
    ...(typeof estimate === 'number' && { estimate }),
  }
}

/** Why somebody else, or a key, would not even reach it; null where they would. */
async function barredAs(deps: CheckDeps, call: Call, at: Reached, as: As): Promise<string | null> {
  if ('role' in as) {
    // Never wider than the caller: what a higher role sees is not theirs to ask.
    if (!roleAtLeast(at.membership.role, as.role)) throw roleRequired(as.role)
    const member = { ...at.membership, role: as.role }
    return (await reaches(deps.store, member, at.row)) ? null : `A ${as.role} does not reach this datasource.`
  }
  return await barredByKey(deps, call, at, asId<ApiKeyId>(as.keyId))
}

async function barredByKey(deps: CheckDeps, call: Call, at: Reached, keyId: ApiKeyId): Promise<string | null> {
  const key = await deps.store.db
    .selectFrom('api_keys')
    .selectAll()
    .where('id', '=', keyId)
    .where('account_id', '=', call.caller.accountId)
    .executeTakeFirst()
  if (key === undefined) throw notFound()
  const now = new Date().toISOString()
  if (key.revoked_at !== null && key.revoked_at <= now) return 'This key was revoked.'
  if (key.expires_at !== null && key.expires_at <= now) return 'This key has expired.'
  const caller = callerOf(key)
  if (!holds(caller, 'data:read')) return 'This key lacks the scope data:read.'
  if (!mayEnter(caller, at.teamId) || !isWithin(caller, at.id)) return 'This key does not reach this datasource.'
  return null
}

function split(body: unknown): { readonly as: As | undefined; readonly fields: unknown } {
  if (typeof body !== 'object' || body === null || Array.isArray(body) || !('as' in body)) {
    return { as: undefined, fields: body }
  }
  const { as, ...fields } = body
  const read = As.safeParse(as)
  if (!read.success) throw invalidRequest(['as: must be {role} or {keyId}'])
  return { as: read.data, fields }
}

function positionOf(verdict: { readonly position?: number }): { readonly position?: number } {
  return verdict.position === undefined ? {} : { position: verdict.position }
}
