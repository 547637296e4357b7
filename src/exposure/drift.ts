// Pure: how a database has moved away from what it was when its exposure was saved. What is new is hidden, what is gone
// or of another type is still named by the exposure; saving it again makes today the day to compare with.
import type { Catalog, CatalogColumn, CatalogTable } from '../drivers/driver.ts'
import { tableKey } from './cut.ts'

/** A table as a whole, or with `column` one of it; `type` as it is now, `was` as it was then. */
export interface Drifted {
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

/** In the database's order; of a table that is new or gone its columns are not listed. */
export function driftOf(then: Catalog, now: Catalog): Drift {
  const before = new Map(then.tables.map((table) => [tableKey(table.schema, table.table), table]))
  const after = new Set(now.tables.map((table) => tableKey(table.schema, table.table)))
  const drift = { added: new Array<Drifted>(), removed: new Array<Drifted>(), retyped: new Array<Drifted>() }
  for (const table of now.tables) {
    const was = before.get(tableKey(table.schema, table.table))
    if (was === undefined) drift.added.push({ schema: table.schema, table: table.table })
    else compare(was, table, drift)
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

/** Met in fewer rows of a sample, types differ by chance. */
const MET_MIN = 20

/** Where a column has no type of its own, only its values have: that none of them is of a type that any was before. */
function holdsOthers(was: CatalogColumn, is: CatalogColumn, then: CatalogTable, now: CatalogTable): boolean {
  const [before, after] = [typesOf(was), typesOf(is)]
  if (before.length === 0 || after.length === 0 || after.some((type) => before.includes(type))) return false
  const isSure = then.looked?.all === true && now.looked?.all === true
  return isSure || Math.min(was.seen?.rows ?? 0, is.seen?.rows ?? 0) >= MET_MIN
}

function typesOf(column: CatalogColumn): readonly string[] {
  return (column.seen?.types ?? []).filter((type) => type !== 'null')
}
