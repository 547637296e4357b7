// A text must not reveal the names of hidden tables and columns. A name like `wage_2`, which is no ordinary word,
// counts as found anywhere. An ordinary word like `people` counts as a hidden column only in a text about the column's
// table, or directly after that table's name. It counts as a hidden table only where the text uses it as a name
// (words-used-as-names.ts), for example in “FROM people”.
import type { Catalog, CatalogTable } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import { identifiersOf } from './words-used-as-names.ts'
import { Names, wordsOf } from './split-words.ts'

/** Shorter words are too common. A column name directly after its table's name may be shorter. */
const LETTERS_MIN = 3

/** Build one instance per pair of catalogs, for all texts. */
export class HiddenNames {
  readonly #columns = new Map<string, Names<string>>()
  /** Names that are no ordinary words, without those that an exposed object also has. */
  readonly #anywhere = new Names<string>()
  readonly #distinct = new Set<string>()
  readonly #plain = new Names<string>()
  /** Hidden tables whose name is an ordinary word. */
  readonly #owners = new Names<CatalogTable>()
  /** The first word of each name above. Most texts contain none of these words. */
  readonly #firsts = new Set<string>()

  constructor(exposed: Pick<Catalog, 'tables'>, full: Pick<Catalog, 'tables'>) {
    const visible = new Map(exposed.tables.map((each) => [tableKey(each.schema, each.table), each]))
    // A name that an exposed object also has reveals nothing.
    const shown = new Set(
      exposed.tables.flatMap(({ schema, table, columns }) =>
        [table, `${schema}.${table}`, ...columns.map(({ name }) => name)].map((name) => name.toLowerCase()),
      ),
    )
    for (const each of full.tables) {
      const { schema, table } = each
      const cut = visible.get(tableKey(schema, table))
      if (cut?.columns.length !== each.columns.length) this.#hide(each, cut, shown)
      if (cut !== undefined) continue
      this.#hideAnywhere(`${schema}.${table}`, shown)
      if (!isPlain(table)) this.#hideAnywhere(table, shown)
      else if (isWord(table) && !shown.has(table.toLowerCase())) this.#plain.add(table, table)
    }
    for (const names of [this.#anywhere, this.#plain, this.#owners, ...this.#columns.values()]) {
      for (const word of names.firsts) this.#firsts.add(word)
    }
  }

  #hideAnywhere(name: string, shown: ReadonlySet<string>): void {
    const lower = name.toLowerCase()
    if (!isWord(name) || shown.has(lower) || this.#distinct.has(lower)) return
    this.#distinct.add(lower)
    this.#anywhere.add(name, name)
  }

  #hide(table: CatalogTable, cut: CatalogTable | undefined, shown: ReadonlySet<string>): void {
    const visible = new Set(cut?.columns.map((column) => column.name))
    const hidden = new Names<string>()
    for (const { name } of table.columns) {
      if (visible.has(name)) continue
      hidden.add(name, name)
      if (!isPlain(name)) this.#hideAnywhere(name, shown)
    }
    this.#columns.set(tableKey(table.schema, table.table), hidden)
    this.#owners.add(table.table, table)
  }

  get isEmpty(): boolean {
    return this.#owners.isEmpty
  }

  /** Only whole words count. `words` are the words of the text, if the caller has split it already. */
  in(
    text: string,
    about: { readonly schema: string; readonly table: string },
    words: readonly string[] = wordsOf(text),
  ): readonly string[] {
    const own = this.#columns.get(tableKey(about.schema, about.table))
    const found = new Set<string>()
    const plain = new Set<string>()
    for (let start = 0; start < words.length; start++) {
      if (!this.#firsts.has(words[start] ?? '')) continue
      for (const { value } of own?.at(words, start) ?? []) if (isWord(value)) found.add(value)
      for (const { value } of this.#anywhere.at(words, start)) found.add(value)
      for (const { value } of this.#plain.at(words, start)) plain.add(value)
      for (const { value: table, end } of this.#owners.at(words, start)) {
        const following = this.#columns.get(tableKey(table.schema, table.table))?.at(words, end) ?? []
        for (const { value } of following) found.add(`${table.table}.${value}`)
      }
    }
    if (plain.size > 0) {
      const names = new Set(identifiersOf(text))
      for (const table of plain) if (names.has(table.toLowerCase())) found.add(table)
    }
    return [...found]
  }
}

function isPlain(name: string): boolean {
  return !/[_\d]|\p{Ll}\p{Lu}/u.test(name)
}

function isWord(name: string): boolean {
  const [first = '', ...others] = wordsOf(name)
  return others.length > 0 || first.length >= LETTERS_MIN
}
