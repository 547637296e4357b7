// Prints the columns of a table. Each list is printed once, even if the query names the table several times.
import type { Source } from './source.ts'
import type { Work } from './work-budget.ts'

export class PrintedColumns {
  readonly #words: ReadonlySet<string>
  readonly #prefix: string
  readonly #work: Work
  readonly #whole = new Map<Source, Printed>()
  readonly #used = new Map<Source, Printed>()

  /** `words` has every name of the query, in lower case. `prefix` is the alias of the table inside its sub-select. */
  constructor(words: ReadonlySet<string>, prefix: string, work: Work) {
    this.#words = words
    this.#prefix = prefix
    this.#work = work
  }

  /**
   * If the query reads whole rows, prints all exposed columns. Otherwise prints only the columns that the query names,
   * because an older shard may lack other columns. At least one column must be printed, even if the query names none.
   */
  of(source: Source, isWhole: boolean): Printed {
    const known = isWhole ? this.#whole : this.#used
    const made = known.get(source) ?? this.#print(source, isWhole)
    known.set(source, made)
    return made
  }

  #print({ columns }: Source, isWhole: boolean): Printed {
    this.#work.spend(columns.length)
    const used = isWhole ? columns : columns.filter((name) => this.#words.has(name.toLowerCase()))
    const names = used.length > 0 ? used : columns.slice(0, 1)
    return { names, list: names.map((name) => `${this.#prefix}.\`${name}\``).join(', ') }
  }
}

interface Printed {
  readonly names: readonly string[]
  readonly list: string
}
