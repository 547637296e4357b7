// Drift is what has changed in the database since the exposure was saved. New columns are hidden, unless they are
// nested in an exposed column. Columns that were removed or have another type stay in the exposure. Saving the exposure
// again clears the drift.
import type { Catalog, CatalogColumn, CatalogTable } from '../drivers/driver.ts'
import { inSlices } from '../event-loop-slices.ts'
import { tableKey } from './cut-catalog.ts'

/** A table, or one of its columns if `column` is set. `type` is the current type, `was` the earlier type. */
interface Drifted {
  readonly schema: string
  readonly table: string
  readonly column?: string
  readonly type?: string
  readonly was?: string
}

export interface Drift {
  readonly added: readonly Drifted[]
  readonly removed: readonly Drifted[]
  readonly retyped: readonly Drifted[]
}

/**
 * In database order, without the columns of a new or removed table. Yields to the event loop, because a catalog may
 * have tens of thousands of columns.
 */
export async function driftOf(then: Catalog, now: Catalog): Promise<Drift> {
  const turn = inSlices()
  const before = new Map(then.tables.map((table) => [tableKey(table.schema, table.table), table]))
  const after = new Set(now.tables.map((table) => tableKey(table.schema, table.table)))
  const drift = { added: new Array<Drifted>(), removed: new Array<Drifted>(), retyped: new Array<Drifted>() }
  for (const table of now.tables) {
    const was = before.get(tableKey(table.schema, table.table))
    if (was === undefined) drift.added.push({ schema: table.schema, table: table.table })
    else if (was !== table) compare(was, table, drift)
    await turn()
  }
  for (const { schema, table } of then.tables) {
    if (!after.has(tableKey(schema, table))) drift.removed.push({ schema, table })
  }
  return drift
}

type Lists = { readonly [K in keyof Drift]: Drifted[] }

function compare(then: CatalogTable, now: CatalogTable, drift: Lists): void {
  const { schema, table } = now
  const before = new Map(then.columns.map((column) => [column.name, column]))
  for (const column of now.columns) {
    const was = before.get(column.name)
    before.delete(column.name)
    const at = { schema, table, column: column.name }
    if (was === undefined) drift.added.push({ ...at, type: column.type })
    else if (was.type !== column.type) drift.retyped.push({ ...at, type: column.type, was: was.type })
    else if (holdsOthers(was, column, then, now)) {
      drift.retyped.push({ ...at, type: typesOf(column).join(' or '), was: typesOf(was).join(' or ') })
    }
  }
  for (const { name, type } of before.values()) drift.removed.push({ schema, table, column: name, was: type })
}

/**
 * Without a declared type, a column has the types of its sampled values, and another sample may have other types by
 * chance. So a change of type counts only if both samples have the column in at least this many rows, or if all rows
 * were read.
 */
const MET_MIN = 20

/** True if no current value of the column has an earlier type. False if too few values were read to be sure. */
function holdsOthers(was: CatalogColumn, is: CatalogColumn, then: CatalogTable, now: CatalogTable): boolean {
  const [before, after] = [typesOf(was), typesOf(is)]
  if (before.length === 0 || after.length === 0 || after.some((type) => before.includes(type))) return false
  const isSure = then.looked?.all === true && now.looked?.all === true
  return isSure || Math.min(was.seen?.rows ?? 0, is.seen?.rows ?? 0) >= MET_MIN
}

function typesOf(column: CatalogColumn): readonly string[] {
  return (column.seen?.types ?? []).filter((type) => type !== 'null')
}
