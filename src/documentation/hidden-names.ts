// Finds, in a text, the names of what is not exposed: hidden columns of its own table, those of another one behind its
// name, and hidden tables where they are named with their schema or by a name that is no plain word.
import type { Catalog, CatalogTable } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import { Names, wordsOf } from './words.ts'

/** A shorter word is too common to be looked for. */
const LETTERS_MIN = 3

/** Made once a pair of catalogs, however many texts are asked about. */
export class HiddenNames {
  /** Hidden columns, by table; those that hide none are not in it. */
  readonly #columns = new Map<string, Names<string>>()
  /** Hidden tables, by the names they are known by. */
  readonly #tables = new Names<string>()
  /** Tables that hide a column, which may stand behind their name. */
  readonly #owners = new Names<CatalogTable>()

  constructor(exposed: Pick<Catalog, 'tables'>, full: Pick<Catalog, 'tables'>) {
    const visible = new Map(exposed.tables.map((each) => [tableKey(each.schema, each.table), each]))
    // One that shares its name with an exposed one is not told by it.
    const shown = new Set(
      exposed.tables.flatMap(({ schema, table }) => [table.toLowerCase(), `${schema}.${table}`.toLowerCase()]),
    )
    for (const each of full.tables) {
      const { schema, table } = each
      const key = tableKey(schema, table)
      const cut = visible.get(key)
      if (cut?.columns.length !== each.columns.length) this.#hide(each, cut)
      if (cut !== undefined) continue
      const names = /[_\d]|\p{Ll}\p{Lu}/u.test(table) ? [`${schema}.${table}`, table] : [`${schema}.${table}`]
      for (const name of names) {
        if (isWord(name) && !shown.has(name.toLowerCase())) this.#tables.add(name, name)
      }
    }
  }

  #hide(table: CatalogTable, cut: CatalogTable | undefined): void {
    const visible = new Set(cut?.columns.map((column) => column.name))
    const hidden = new Names<string>()
    for (const { name } of table.columns) if (!visible.has(name)) hidden.add(name, name)
    this.#columns.set(tableKey(table.schema, table.table), hidden)
    this.#owners.add(table.table, table)
  }

  /** Those that a text about this table holds, as words of their own. */
  in(text: string, about: { readonly schema: string; readonly table: string }): readonly string[] {
    if (this.#owners.isEmpty) return []
    const own = this.#columns.get(tableKey(about.schema, about.table))
    const words = wordsOf(text)
    const found = new Set<string>()
    for (let start = 0; start < words.length; start++) {
      for (const { value } of own?.at(words, start) ?? []) if (isWord(value)) found.add(value)
      for (const { value } of this.#tables.at(words, start)) found.add(value)
      for (const { value: table, end } of this.#owners.at(words, start)) {
        const behind = this.#columns.get(tableKey(table.schema, table.table))?.at(words, end) ?? []
        for (const { value } of behind) found.add(`${table.table}.${value}`)
      }
    }
    return [...found]
  }
}

function isWord(name: string): boolean {
  const [first = '', ...others] = wordsOf(name)
  return others.length > 0 || first.length >= LETTERS_MIN
}
