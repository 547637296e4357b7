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

/**
 * Those of the columns that a refusal's `column.name` may mean, the likeliest first: itself, or what it is a part of, where
 * what is in that is not known. `all`: those of the whole table.
 */
export function columnsMeant(
  columns: readonly CatalogColumn[],
  name: string,
  all: readonly CatalogColumn[],
): readonly CatalogColumn[] {
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
    const isInside = plain.startsWith(`${column.name}.`) || plain.includes(`.${column.name}.`)
    return isInside && mayHoldMore(column, all) ? 3 : null
  })
}

/** False where its parts are listed, or its values were seen to have none: another path below it is a slip of the pen. */
function mayHoldMore(column: CatalogColumn, all: readonly CatalogColumn[]): boolean {
  if (all.some((each) => each.partOf === column.name)) return false
  return column.seen === undefined || column.seen.types.some((type) => type === 'object' || type === 'array')
}

/** Those parts of one column that a text names: whole, else by their own names; the first where it names none. */
export function partsMeant(parts: readonly CatalogColumn[], text: string): readonly CatalogColumn[] {
  const words = (written: string) =>
    ` ${written
      .toLowerCase()
      .split(/[^\p{L}\p{N}_-]+/u)
      .join(' ')} `
  const said = words(text)
  const whole = parts.filter((part) => said.includes(words(part.name)))
  if (whole.length > 0) return whole
  const own = parts.filter((part) => said.includes(words(part.name.slice((part.partOf?.length ?? -1) + 1))))
  return own.length > 0 ? own : parts.slice(0, 1)
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
