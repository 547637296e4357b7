// Proposes the smallest exposure with which a refused query would pass. Saves nothing.
import type { Audit } from '../audit/audit.ts'
import { Blocked } from '../audit/refusal-reason.ts'
import type { Call } from '../auth/caller.ts'
import type { CatalogTable, Denied, Driver } from '../drivers/driver.ts'
import { AppError, notFound } from '../errors.ts'
import type { AuditId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { auditedQuery } from './read-audited-queries.ts'
import type { Catalogs } from '../exposure/catalog-cache.ts'
import { cut, tableKey, type ShownTable } from '../exposure/cut-catalog.ts'
import { versionsNow, type ExposurePlace } from '../exposure/exposure.ts'
import { freeze } from '../exposure/freeze-names.ts'
import { ownerOfTeam } from '../teams/team-owner.ts'
import { columnsMeant, mentioned } from './column-mentions.ts'
import { notIntrospected } from '../exposure/require-usable.ts'
import { bodyOf, judge } from './replay-query.ts'
import {
  isMeant,
  notInCatalog,
  withAdditions,
  widen,
  type Addition,
  type Ground,
  type Widening,
} from './smallest-widening.ts'

interface Deps {
  readonly store: Store
  readonly audit: Audit
  readonly catalogs: Catalogs
}

/**
 * `tables` and `version` are the body of the PUT that saves the exposure. `added` has the columns that are new in it.
 */
export interface Widened {
  readonly tables: readonly ShownTable[]
  readonly version: number
  readonly added: readonly ShownTable[]
}

const SEARCH_MS = 10_000

/**
 * Throws NOT_FOUND if this datasource has no audit row with this id, NOT_CONNECTED before the first introspection, and
 * CONFLICT with the reason if no change of the exposure lets the query pass.
 */
export async function exposureFromRefusal(
  deps: Deps,
  call: Call,
  at: ExposurePlace & { readonly driver: Driver },
  auditId: AuditId,
): Promise<Widened> {
  await deps.audit.flush()
  const row = await auditedQuery(deps.store, at, auditId)
  if (row === null) throw notFound()
  const current = await versionsNow(deps.store, at.id)
  const [full, saved] = await Promise.all([deps.catalogs.full(current), deps.catalogs.shown(current)])
  if (full === null) throw notIntrospected()
  const body = row.text === null ? null : bodyOf(at.driver, row.text, row.params)
  if (body === null)
    throw cannotWiden('the audit does not contain its text. The text was redacted, or the call had none.')
  const ground = { driver: at.driver, body, full, saved, owner: await ownerOfTeam(deps.store, at.teamId) }
  const blocked = row.blocked === null ? null : Blocked.parse(JSON.parse(row.blocked))
  const found = await searched(ground, call.signal)
  const isWhole = 'why' in found || blocked === null || at.driver.leavesColumns !== true
  const widening = isWhole ? found : await withColumn(ground, found, blocked, call.signal)
  if ('why' in widening) throw cannotWiden(widening.why)
  const { additions } = widening
  if (additions.length === 0 && blocked?.kind === 'cost') throw cannotWiden('it was refused because of its cost.')
  const { tables, problems } = freeze(withAdditions(saved, additions), full, saved)
  if (problems.length > 0) throw cannotWiden(problems.join('; '))
  deps.audit.record(call, { teamId: at.teamId, datasourceId: at.id, outcome: 'ANSWERED' })
  return { tables, version: current.exposure_version, added: listed(ground, additions) }
}

/** Searches in the tables that the query names, and then judges the result with the whole catalog. */
async function searched(ground: Ground, caller: AbortSignal): Promise<Widening> {
  const tooLong = AbortSignal.timeout(SEARCH_MS)
  const signal = AbortSignal.any([caller, tooLong])
  try {
    const widening = await widen(ground, signal)
    if ('why' in widening) return widening
    const proposed = cut(ground.full, withAdditions(ground.saved, widening.additions))
    const verdict = await judge(ground.driver, ground.body, proposed, ground.owner, signal)
    return verdict.kind === 'denied' ? { why: `${verdict.why}.` } : widening
  } catch (error) {
    if (caller.aborted || !tooLong.aborted) throw error
    return { why: 'the search took too long.' }
  }
}

/** Adds the hidden column that the database did not find, for guards that do not check column names. */
async function withColumn(
  ground: Ground,
  found: { readonly additions: readonly Addition[] },
  blocked: Denied['blocked'],
  signal: AbortSignal,
): Promise<Widening> {
  const { full, saved, body } = ground
  const tables = mentioned(full, body.text)
  const shown = cut({ ...full, tables }, saved)
  if (found.additions.length > 0 || blocked.kind !== 'column' || isMeant(shown, blocked.name)) return found
  const keys = new Set(shown.tables.map((table) => tableKey(table.schema, table.table)))
  const near = tables.filter((table) => keys.has(tableKey(table.schema, table.table)))
  const hidden: Addition[] = []
  for (const table of near) {
    const meant = columnsMeant(table.columns, blocked.name, table.columns)
    if (meant.length === 0 || !(await isRead(ground, table, signal))) continue
    hidden.push(...meant.map((column) => ({ table, column })))
  }
  if (hidden.length === 0) return { why: notInCatalog(blocked.name) }
  return hidden.length === 1 ? { additions: hidden } : { why: `several of its tables have the column ${blocked.name}.` }
}

/** Returns false if the query passes without the table. Then the query only happens to contain the table's name. */
async function isRead(
  { driver, body, full, saved, owner }: Ground,
  table: CatalogTable,
  signal: AbortSignal,
): Promise<boolean> {
  const without = saved.filter((shown) => tableKey(shown.schema, shown.table) !== tableKey(table.schema, table.table))
  return (await judge(driver, body, cut(full, without), owner, signal)).kind !== 'confined'
}

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

function cannotWiden(why: string): AppError {
  return new AppError('CONFLICT', `No change of the exposure would let this query pass: ${why}`)
}
