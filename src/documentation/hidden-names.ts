// Finds, in a text, the names of what is not exposed: hidden columns of its own table, those of another one behind its
// name, and hidden tables where they are named with their schema or by a name that is no plain word.
import type { Catalog, CatalogTable } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import { runOf, runs, wordsOf } from './words.ts'

/** Shorter ones are no words to look for. */
const LETTERS_MIN = 3

/** Made once a pair of catalogs, however many texts are asked about. */
export class HiddenNames {
  readonly #exposed: ReadonlyMap<string, CatalogTable>
  readonly #full: ReadonlyMap<string, CatalogTable>
  /** Names that a hidden table is known by. */
  readonly #tables = new Map<string, string>()
  /** Every table, by its name alone: a hidden column may stand behind it. */
  readonly #byName = new Map<string, CatalogTable[]>()
  readonly #columns = new Map<CatalogTable, ReadonlyMap<string, string>>()

  constructor(exposed: Pick<Catalog, 'tables'>, full: Pick<Catalog, 'tables'>) {
    const keyed = (tables: readonly CatalogTable[]) =>
      new Map(tables.map((each) => [tableKey(each.schema, each.table), each]))
    this.#exposed = keyed(exposed.tables)
    this.#full = keyed(full.tables)
    // One that shares its name with an exposed one is not told by it.
    const shown = new Set(exposed.tables.flatMap(({ schema, table }) => [runOf(`${schema}.${table}`), runOf(table)]))
    for (const each of full.tables) {
      const { schema, table } = each
      const run = runOf(table)
      this.#byName.set(run, [...(this.#byName.get(run) ?? []), each])
      if (this.#exposed.has(tableKey(schema, table))) continue
      const names = /[_\d]|\p{Ll}\p{Lu}/u.test(table) ? [`${schema}.${table}`, table] : [`${schema}.${table}`]
      for (const name of names) {
        if (isWord(runOf(name)) && !shown.has(runOf(name))) this.#tables.set(runOf(name), name)
      }
    }
  }

  /** Those that a text about this table holds, as words of their own. */
  in(text: string, about: { readonly schema: string; readonly table: string }): readonly string[] {
    const own = this.#hiddenOf(this.#full.get(tableKey(about.schema, about.table)))
    const words = wordsOf(text)
    const found = new Set<string>()
    for (const [run, end] of runs(words)) {
      const name = own.get(run) ?? this.#tables.get(run)
      if (name !== undefined && isWord(run)) found.add(name)
      for (const table of this.#byName.get(run) ?? []) {
        const hidden = this.#hiddenOf(table)
        if (hidden.size === 0) continue
        for (const [behind] of runs(words, end, end + 1)) {
          const column = hidden.get(behind)
          if (column !== undefined) found.add(`${table.table}.${column}`)
        }
      }
    }
    return [...found]
  }

  /** The columns of a table that are not exposed, by their runs. */
  #hiddenOf(table: CatalogTable | undefined): ReadonlyMap<string, string> {
    if (table === undefined) return NONE
    const known = this.#columns.get(table)
    if (known !== undefined) return known
    const exposed = this.#exposed.get(tableKey(table.schema, table.table))
    const visible = new Set(exposed?.columns.map((column) => column.name))
    const hidden = table.columns.filter((column) => !visible.has(column.name))
    const byRun = new Map(hidden.map((column) => [runOf(column.name), column.name]))
    this.#columns.set(table, byRun)
    return byRun
  }
}

const NONE: ReadonlyMap<string, string> = new Map()

function isWord(run: string): boolean {
  return run.replaceAll(' ', '').length >= LETTERS_MIN
}
