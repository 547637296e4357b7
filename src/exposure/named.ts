// Pure: which tables and columns of a catalog a query or a refusal may mean, by name alone and for every kind alike. It
// guesses wide; whoever asks tries each guess with the guard.
import type { Catalog, CatalogColumn, CatalogTable } from '../drivers/driver.ts'

/** The tables whose name stands somewhere in the text, in the catalog's order. */
export function mentioned(catalog: Catalog, text: string): readonly CatalogTable[] {
  const lower = text.toLowerCase()
  return catalog.tables.filter(({ table }) => {
    const name = stem(table).toLowerCase()
    // As SQL and JSON write what holds their own quotes.
    const written = [name, name.replaceAll('"', '""'), JSON.stringify(name).slice(1, -1)]
    return written.some((each) => lower.includes(each))
  })
}

/** Those of the tables that a refusal's `table.name` may mean, the likeliest first. */
export function tablesMeant(tables: readonly CatalogTable[], name: string): readonly CatalogTable[] {
  return ranked(tables, ({ schema, table }) => {
    const [full, whole] = [`${schema}.${table}`, stem(table)]
    if (name === full || name.endsWith(`.${full}`)) return 0
    if (name === table) return 1
    if (lastOf(name, table) || (whole !== table && name.includes(whole))) return 2
    return name.toLowerCase().endsWith(table.toLowerCase()) ? 3 : null
  })
}

/** Those of the columns that a refusal's `column.name` may mean, the likeliest first: itself, or what it is a part of. */
export function columnsMeant(columns: readonly CatalogColumn[], name: string): readonly CatalogColumn[] {
  // Places in arrays are no part of a column's name.
  const plain = name
    .split('.')
    .filter((part) => !/^\d+$/.test(part))
    .join('.')
  const lower = plain.toLowerCase()
  return ranked(columns, (column) => {
    if (name === column.name || plain === column.name) return 0
    if (lastOf(plain, column.name) || lastOf(name, column.name)) return 1
    const own = column.name.toLowerCase()
    if (lower === own || lastOf(lower, own)) return 2
    return plain.startsWith(`${column.name}.`) || plain.includes(`.${column.name}.`) ? 3 : null
  })
}

/** A family of tables is listed under the name that theirs begin with. */
function stem(table: string): string {
  return table.replace(/\*$/, '')
}

function lastOf(name: string, part: string): boolean {
  return name.endsWith(`.${part}`)
}

function ranked<T>(all: readonly T[], rankOf: (each: T) => number | null): readonly T[] {
  return all
    .flatMap((each) => {
      const rank = rankOf(each)
      return rank === null ? [] : [{ each, rank }]
    })
    .sort((a, b) => a.rank - b.rank)
    .map(({ each }) => each)
}
