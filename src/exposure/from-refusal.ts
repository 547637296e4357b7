// From a refused query in the audit to the smallest exposure that would let it pass, as a proposal: nothing is saved.
import type { Audit } from '../audit/audit.ts'
import type { Call } from '../auth/caller.ts'
import type { Driver } from '../drivers/driver.ts'
import { AppError, notFound } from '../errors.ts'
import type { AuditId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { auditedQuery } from './audited.ts'
import type { Catalogs } from './catalogs.ts'
import { cut, tableKey, type ShownTable } from './cut.ts'
import { versionsNow, type ExposurePlace } from './exposure.ts'
import { freeze } from './freeze.ts'
import { notIntrospected } from './refusals.ts'
import { bodyOf, judge } from './replay.ts'
import { together, widen, type Addition, type Ground, type Widening } from './widening.ts'

interface Deps {
  readonly store: Store
  readonly audit: Audit
  readonly catalogs: Catalogs
}

/** A body for PUT, and what it adds to the exposure as it stands. */
export interface Widened {
  readonly tables: readonly ShownTable[]
  readonly version: number
  readonly added: readonly ShownTable[]
}

const SEARCH_MS = 20_000

/**
 * Throws NOT_FOUND for an audit id that is not this datasource's, NOT_CONNECTED before the first introspection, and
 * CONFLICT, with the reason, where no change of the exposure would let the query pass.
 */
export async function exposureFromRefusal(
  deps: Deps,
  call: Call,
  at: ExposurePlace & { readonly driver: Driver },
  auditId: AuditId,
): Promise<Widened> {
  await deps.audit.flush()
  const row = await auditedQuery(deps.store, at.id, auditId)
  if (row === null) throw notFound()
  const current = await versionsNow(deps.store, at.id)
  const [full, saved] = await Promise.all([deps.catalogs.full(current), deps.catalogs.shown(current)])
  if (full === null) throw notIntrospected()
  const body = row.text === null ? null : bodyOf(at.driver, row.text)
  if (body === null) throw none('the audit does not hold the query; it was redacted, or there was none.')
  const ground = { driver: at.driver, body, full, saved }
  const widening = await searched(ground, call.signal)
  if ('why' in widening) throw none(widening.why)
  const { additions } = widening
  if (additions.length === 0 && row.blocked !== null && wasCost(row.blocked)) throw none('it was refused for its cost.')
  const { tables } = freeze(together(saved, additions), full, saved)
  deps.audit.record(call, { teamId: at.teamId, datasourceId: at.id, outcome: 'ANSWERED' })
  return { tables, version: current.exposure_version, added: listed(ground, additions) }
}

/** What was found, and holds over the whole catalog too. */
async function searched(ground: Ground, caller: AbortSignal): Promise<Widening> {
  const tooLong = AbortSignal.timeout(SEARCH_MS)
  const signal = AbortSignal.any([caller, tooLong])
  try {
    const widening = await widen(ground, signal)
    if ('why' in widening) return widening
    const proposed = cut(ground.full, together(ground.saved, widening.additions))
    const verdict = await judge(ground.driver, ground.body, proposed, signal)
    return verdict.kind === 'denied' ? { why: `${verdict.why}.` } : widening
  } catch (error) {
    if (caller.aborted || !tooLong.aborted) throw error
    return { why: 'it would take too long to find out.' }
  }
}

/** In the catalog's order. */
function listed({ full }: Ground, additions: readonly Addition[]): readonly ShownTable[] {
  return full.tables.flatMap((table) => {
    const key = tableKey(table.schema, table.table)
    const names = new Set(
      additions.filter((each) => tableKey(each.table.schema, each.table.table) === key).map((each) => each.column.name),
    )
    const columns = table.columns.map((column) => column.name).filter((name) => names.has(name))
    return columns.length === 0 ? [] : [{ schema: table.schema, table: table.table, columns }]
  })
}

function wasCost(blocked: string): boolean {
  const read: unknown = JSON.parse(blocked)
  return typeof read === 'object' && read !== null && 'kind' in read && read.kind === 'cost'
}

function none(why: string): AppError {
  return new AppError('CONFLICT', `No change of the exposure would let this query pass: ${why}`)
}
