// The exposed columns that a text names, so that what somebody wrote rests on what it speaks of, whether they said so or
// not. It guesses wide: a text that rests on one column more is hidden sooner, never later.
import type { Catalog, CatalogTable } from '../drivers/driver.ts'
import { fullName } from './columns.ts'
import { Names, wordsOf } from './words.ts'

/** Made once a catalog, however many texts are read. */
export class ColumnMentions {
  readonly #tables = new Names<CatalogTable>()

  constructor(catalog: Pick<Catalog, 'tables'>) {
    for (const table of catalog.tables) this.#tables.add(table.table, table)
  }

  /** As a text about `own` rests on them; a table that is named without any column of it stands there by its first. */
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
