// Finds the tables and columns that a query or a refusal names. Compares only the spelling, so it may be wrong.
import type { Catalog, CatalogTable } from '../drivers/driver.ts'

const TEXT_MAX = 20_000
/** Tables of several schemas may have the same name. At most this many tables are found for a name. */
const TABLES_MAX = 4

/** In lower case. */
export interface TableNames {
  /** Without their schema. */
  readonly byName: ReadonlyMap<string, readonly CatalogTable[]>
  /** Shard families (such as BigQuery's `events_*`), with the common prefix of their tables. */
  readonly families: readonly { readonly prefix: string; readonly table: CatalogTable }[]
}

export function namesOf(catalog: Catalog): TableNames {
  const byName = new Map<string, CatalogTable[]>()
  const families: { prefix: string; table: CatalogTable }[] = []
  for (const table of catalog.tables) {
    const name = table.table.toLowerCase()
    const alike = byName.get(name)
    if (alike === undefined) byName.set(name, [table])
    else alike.push(table)
    if (name.endsWith('*')) families.push({ prefix: name.slice(0, -1), table })
  }
  return { byName, families }
}

/** The keys are in lower case. */
export function columnsByName(table: CatalogTable): ReadonlyMap<string, string> {
  return new Map(table.columns.map(({ name }) => [name.toLowerCase(), name]))
}

/**
 * Returns each word, each quoted name, and the parts of quoted paths, in lower case. For `"address.city"`, these are
 * `address.city`, `address` and `city`.
 */
export function namesIn(text: string): ReadonlySet<string> {
  const lower = text.slice(0, TEXT_MAX).toLowerCase()
  const names = new Set(lower.match(/[\p{L}\p{N}_$]+/gu))
  for (const [, double, back] of lower.matchAll(/"((?:[^"\\]|\\.|""){1,200})"|`([^`]{1,300})`/g)) {
    const quoted = (double?.replaceAll('""', '"') ?? back ?? '').replace(/^\$+/, '')
    for (let path = quoted; path !== ''; path = path.slice(0, Math.max(0, path.lastIndexOf('.')))) names.add(path)
    names.add(quoted.slice(quoted.lastIndexOf('.') + 1))
  }
  return names
}

/** Also returns a shard family if a name begins with its prefix. The order has no meaning. */
export function tablesNamed(names: ReadonlySet<string>, tables: TableNames): readonly CatalogTable[] {
  const found: CatalogTable[] = []
  for (const name of names) {
    found.push(...(tables.byName.get(name)?.slice(0, TABLES_MAX) ?? []))
    for (const { prefix, table } of tables.families) if (name.startsWith(prefix)) found.push(table)
  }
  return [...new Set(found)]
}

/** Returns the tables that a refused name may mean: `orders`, `public.orders` or `project.dataset.orders`. */
export function tablesBlocked(name: string, tables: TableNames): readonly CatalogTable[] {
  const lower = name.toLowerCase()
  for (let rest = lower, before = ''; ;) {
    const alike = tables.byName.get(rest)
    if (alike !== undefined) {
      const exact = alike.filter(
        ({ schema }) => before === schema.toLowerCase() || before.endsWith(`.${schema.toLowerCase()}`),
      )
      return (before === '' ? alike : exact).slice(0, TABLES_MAX)
    }
    const dot = rest.indexOf('.')
    if (dot === -1) break
    before = lower.slice(0, lower.length - rest.length + dot)
    rest = rest.slice(dot + 1)
  }
  return tables.families
    .filter(({ prefix }) => lower.slice(lower.lastIndexOf('.') + 1).startsWith(prefix))
    .map(({ table }) => table)
}

/**
 * Returns the column that a refused name means: for `c.email`, `email`. For an unknown path such as `address.zip`,
 * returns the known column that contains it, such as `address`.
 */
export function columnBlocked(name: string, columns: ReadonlyMap<string, string>): string | undefined {
  const lower = name.toLowerCase()
  for (let path = lower; path !== ''; path = path.slice(0, Math.max(0, path.lastIndexOf('.')))) {
    const found = columns.get(path)
    if (found !== undefined) return found
  }
  return columns.get(lower.slice(lower.lastIndexOf('.') + 1))
}

/** True for `SELECT *`, `t.*`, and MongoDB queries in which no stage selects or groups fields. */
export function readsAll(text: string): boolean {
  const part = text.slice(0, TEXT_MAX)
  if (part.startsWith('{'))
    return !/"\$(?:project|group|bucket|bucketAuto|count|sortByCount|replaceRoot|replaceWith)"/.test(part)
  return /(?:\bselect|\bdistinct|\ball|,|\.)\s*\*/i.test(part)
}
