// Which columns of a table are printed. Each list is made once, however often the text names the table.
import type { Source } from './source.ts'
import type { Work } from './work.ts'

/** By table, its list as it is printed. */
export class PrintedColumns {
  readonly #words: ReadonlySet<string>
  readonly #prefix: string
  readonly #work: Work
  readonly #whole = new Map<Source, Printed>()
  readonly #used = new Map<Source, Printed>()

  /** `words`: every name of the text, in lower case; `prefix`: what stands for the table inside its sub-select. */
  constructor(words: ReadonlySet<string>, prefix: string, work: Work) {
    this.#words = words
    this.#prefix = prefix
    this.#work = work
  }

  /** All that is exposed where rows are read whole; else what the text names: an older shard need not have the rest. */
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
