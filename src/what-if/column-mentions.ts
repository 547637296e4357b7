// Finds the tables and columns that a name in a query or in a refusal may mean. For example, `orders` may mean the
// table `shop.orders`. Compares only names, so it may find too many.
import type { Catalog, CatalogColumn, CatalogTable } from '../drivers/driver.ts'

/** Returns the tables whose name occurs in the text, in catalog order. */
export function mentioned(catalog: Catalog, text: string): readonly CatalogTable[] {
  const lower = text.toLowerCase()
  return catalog.tables.filter(({ table }) => {
    const name = stem(table).toLowerCase()
    // SQL and JSON escape quotes inside a name.
    const escaped = [name, name.replaceAll('"', '""'), JSON.stringify(name).slice(1, -1)]
    return escaped.some((each) => lower.includes(each))
  })
}

/** Returns the tables that the name of a refused table may mean, the most likely table first. */
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
 * The most likely column comes first. For the unknown name `address.city`, returns the column `address` if its contents
 * are unknown. `all` contains every column of the table.
 */
export function columnsMeant(
  columns: readonly CatalogColumn[],
  name: string,
  all: readonly CatalogColumn[],
): readonly CatalogColumn[] {
  // Array positions are not part of a column's name.
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

/** False if the catalog lists all fields of the column. Then an unknown path such as `address.ctiy` is misspelled. */
function mayHoldMore(column: CatalogColumn, all: readonly CatalogColumn[]): boolean {
  if (all.some((each) => each.partOf === column.name)) return false
  return column.seen === undefined || column.seen.types.some((type) => type === 'object' || type === 'array')
}

/**
 * Returns the nested columns whose full name, such as `address.city`, occurs in `text`, or else those whose last name,
 * such as `city`, occurs, or else the first of `parts`.
 */
export function partsMeant(parts: readonly CatalogColumn[], text: string): readonly CatalogColumn[] {
  const words = (escaped: string) =>
    ` ${escaped
      .toLowerCase()
      .split(/[^\p{L}\p{N}_-]+/u)
      .join(' ')} `
  const textWords = words(text)
  const whole = parts.filter((part) => textWords.includes(words(part.name)))
  if (whole.length > 0) return whole
  const own = parts.filter((part) => textWords.includes(words(part.name.slice((part.partOf?.length ?? -1) + 1))))
  return own.length > 0 ? own : parts.slice(0, 1)
}

/**
 * In the catalog, the BigQuery tables `events_1` and `events_2` are one table `events_*`. A query may contain either.
 */
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
