// Finds columns that look like undeclared foreign keys, by names, types and ranges of values. For example,
// `orders.customer_id` may reference `customers.id`. Compares only exposed tables, so no hidden name is revealed.
import type { Catalog, CatalogColumn, CatalogTable, Scalar } from '../drivers/driver.ts'
import { compare } from '../drivers/profile-from-sample.ts'
import { tableKey } from '../drivers/table-key.ts'
import type { KeptColumn } from './stored-profiles.ts'

export interface LikelyKey {
  readonly schema: string
  readonly table: string
  readonly column: string
}

export interface SeenTable {
  readonly rowsSampled: number
  readonly columns: readonly Pick<KeptColumn, 'name' | 'unique' | 'range'>[]
}

interface Key extends LikelyKey {
  readonly type: string
  readonly range: KeptColumn['range']
}

/** The outer key is tableKey(), the inner key the column. `exposed` must contain only exposed tables and columns. */
export function likelyKeys(
  exposed: Catalog,
  profiles: ReadonlyMap<string, SeenTable>,
): ReadonlyMap<string, ReadonlyMap<string, LikelyKey>> {
  const keys = keysByName(exposed, profiles)
  const foldedOnce = new Map<string, string>()
  const found = new Map<string, ReadonlyMap<string, LikelyKey>>()
  for (const table of exposed.tables) {
    const profile = profiles.get(tableKey(table.schema, table.table))
    if (profile === undefined) continue
    const likely = new Map<string, LikelyKey>()
    for (const column of table.columns) {
      const name = foldedOnce.get(column.name) ?? folded(column.name.split('.').at(-1) ?? column.name)
      foldedOnce.set(column.name, name)
      const key = likelyKey(table, column, profile, keys.get(name) ?? [])
      if (key !== null) likely.set(column.name, { schema: key.schema, table: key.table, column: key.column })
    }
    if (likely.size > 0) found.set(tableKey(table.schema, table.table), likely)
  }
  return found
}

/** Returns the primary keys with one column, by the names that a referencing column may have. */
function keysByName(exposed: Catalog, profiles: ReadonlyMap<string, SeenTable>): ReadonlyMap<string, readonly Key[]> {
  const keys = new Map<string, Key[]>()
  for (const table of exposed.tables) {
    const [column, ...others] = table.columns.filter((each) => each.primaryKey)
    if (column === undefined || others.length > 0) continue
    const profile = profiles.get(tableKey(table.schema, table.table))
    const kept = profile?.columns.find((each) => each.name === column.name)
    // If the values are not unique, the primary key has other columns that are not exposed.
    if (kept !== undefined && !kept.unique && (profile?.rowsSampled ?? 0) > 1) continue
    const range = kept?.range ?? null
    const key = { schema: table.schema, table: table.table, column: column.name, type: column.type, range }
    for (const name of namesFor(table.table, column.name)) {
      const alike = keys.get(name)
      if (alike === undefined) keys.set(name, [key])
      else alike.push(key)
    }
  }
  return keys
}

/**
 * For customers.id, these are customer_id and customers_id. If the key has a more specific name than `id`, a
 * referencing column may have the same name.
 */
function namesFor(table: string, column: string): ReadonlySet<string> {
  const [plain, key] = [folded(table), folded(column).replace(/^id$|^key$/, 'id')]
  const stems = [plain, plain.replace(/ies$/, 'y'), plain.replace(/(?:es|s)$/, ''), plain.replace(/s$/, '')]
  const names = new Set(stems.filter((stem) => stem !== '').flatMap((stem) => [`${stem}id`, `${stem}${key}`]))
  if (key !== 'id') names.add(key)
  return names
}

/** Returns a name without separators and in lower case, so that customerId equals customer_id. */
function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '')
}

/** Returns the key that a column seems to reference, or null. `keys` are the keys that match the column's name. */
function likelyKey(table: CatalogTable, column: CatalogColumn, seen: SeenTable, keys: readonly Key[]): Key | null {
  if (keys.length === 0 || column.references !== null || column.primaryKey) return null
  const kept = seen.columns.find((each) => each.name === column.name)
  if (kept === undefined) return null
  const candidates = keys.filter(
    (key) =>
      key.type === column.type &&
      !(key.schema === table.schema && key.table === table.table) &&
      isWithin(kept.range, key.range),
  )
  const near = candidates.filter((key) => key.schema === table.schema)
  const [only, ...others] = near.length > 0 ? near : candidates
  return only === undefined || others.length > 0 ? null : only
}

/** Returns true if all values of `range` are within the range of the key, or if a range is unknown. */
function isWithin(range: KeptColumn['range'], key: KeptColumn['range']): boolean {
  if (range === null || key === null) return true
  return isUpTo(key.min, range.min) && isUpTo(range.max, key.max)
}

function isUpTo(low: Scalar, high: Scalar): boolean {
  return compare(low, high) <= 0
}
