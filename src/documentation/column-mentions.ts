// A text depends on every column that it names, even if its author did not list the column. If in doubt, a column
// counts as named: one dependency too many may hide a text too early, but a missing dependency could show a text for
// too long.
import type { Catalog, CatalogTable } from '../drivers/driver.ts'
import { fullName } from './text-dependencies.ts'
import { Names, wordsOf } from './split-words.ts'

/** Build one instance per catalog, for all texts. */
export class ColumnMentions {
  readonly #tables = new Names<CatalogTable>()

  constructor(catalog: Pick<Catalog, 'tables'>) {
    for (const table of catalog.tables) this.#tables.add(table.table, table)
  }

  /**
   * Columns of `own` count by name, and columns of other tables by full name. If the text names another table without a
   * column, its first column counts as named.
   */
  in(text: string, own: CatalogTable): readonly string[] {
    const words = wordsOf(text)
    const others = new Set<CatalogTable>()
    for (let start = 0; start < words.length; start++) {
      for (const { value } of this.#tables.at(words, start)) {
        if (value.schema !== own.schema || value.table !== own.table) others.add(value)
      }
    }
    return [
      ...columnsIn(words, own),
      ...[...others].flatMap((table) => {
        const named = columnsIn(words, table)
        const columns = named.length > 0 ? named : table.columns.slice(0, 1).map(({ name }) => name)
        return columns.map((column) => fullName({ schema: table.schema, table: table.table, column }))
      }),
    ]
  }
}

function columnsIn(words: readonly string[], table: CatalogTable): readonly string[] {
  const names = new Names<string>()
  for (const { name } of table.columns) names.add(name, name)
  const found = new Set(words.flatMap((_, start) => names.at(words, start).map(({ value }) => value)))
  return table.columns.map((column) => column.name).filter((name) => found.has(name))
}
