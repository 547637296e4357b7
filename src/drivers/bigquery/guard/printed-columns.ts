// Prints the columns of a table. Each list is printed once, even if the text names the table several times.
import type { Source } from './source.ts'
import type { Work } from './work-budget.ts'

export class PrintedColumns {
  readonly #words: ReadonlySet<string>
  readonly #prefix: string
  readonly #work: Work
  readonly #whole = new Map<Source, Printed>()
  readonly #used = new Map<Source, Printed>()

  /** `words` has every name of the text, in lower case. `prefix` is the alias of the table inside its sub-select. */
  constructor(words: ReadonlySet<string>, prefix: string, work: Work) {
    this.#words = words
    this.#prefix = prefix
    this.#work = work
  }

  /**
   * If the query reads whole rows, all exposed columns. If not, only the columns that the text names, because an older
   * shard may lack the others. There must be at least one column, so if the text names none, one is printed.
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
