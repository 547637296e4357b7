// Finds, in a text, the names of what is not exposed: the hidden columns of its table, and hidden tables where they are
// named with their schema or by a name that is no plain word. Linear in the text, however many names there are.
import type { Catalog, CatalogTable } from '../drivers/driver.ts'

/** Letters, digits and the underscores between them. */
const WORD = /[\p{L}\p{N}_]+/gu
/** A longer path is known by its first words. */
const WORDS_MAX = 6
/** Shorter ones are no words to look for. */
const LETTERS_MIN = 3

export class HiddenNames {
  /** By the words of a name, in lower case and joined by spaces. */
  readonly #names: ReadonlyMap<string, string>
  readonly #shared: ReadonlyMap<string, string>

  /** `shared`: names of hidden tables, of hiddenTables(). */
  constructor(columns: readonly string[], shared: ReadonlyMap<string, string>) {
    this.#names = new Map(columns.flatMap((name) => entryOf(name)))
    this.#shared = shared
  }

  /** Those that the text holds, whatever the case, as words of their own. */
  in(text: string): readonly string[] {
    const words = wordsOf(text)
    const found = new Set<string>()
    for (let start = 0; start < words.length; start++) {
      let run = ''
      for (let end = start; end < Math.min(words.length, start + WORDS_MAX); end++) {
        run = end === start ? (words[end] ?? '') : `${run} ${words[end] ?? ''}`
        const name = this.#names.get(run) ?? this.#shared.get(run)
        if (name !== undefined) found.add(name)
      }
    }
    return [...found]
  }
}

/** The columns of a table that are not exposed. */
export function hiddenColumns(exposed: CatalogTable | undefined, full: CatalogTable): readonly string[] {
  const visible = new Set(exposed?.columns.map((column) => column.name))
  return full.columns.map((column) => column.name).filter((name) => !visible.has(name))
}

/** The tables that are not exposed, as a text may name them; one that shares its name with an exposed one is not told by it. */
export function hiddenTables(
  exposed: Pick<Catalog, 'tables'>,
  full: Pick<Catalog, 'tables'>,
): ReadonlyMap<string, string> {
  const visible = new Set(exposed.tables.flatMap(({ schema, table }) => [`${schema}.${table}`, table]))
  const entries: (readonly [string, string])[] = []
  for (const { schema, table } of full.tables) {
    const name = `${schema}.${table}`
    if (visible.has(name)) continue
    entries.push(...entryOf(name))
    if (/[_\d]|\p{Ll}\p{Lu}/u.test(table) && !visible.has(table)) entries.push(...entryOf(table))
  }
  return new Map(entries)
}

function entryOf(name: string): (readonly [string, string])[] {
  const words = wordsOf(name).slice(0, WORDS_MAX)
  return words.join('').length < LETTERS_MIN ? [] : [[words.join(' '), name]]
}

function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().match(WORD) ?? []
}
