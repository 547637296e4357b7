// Which columns of a table are printed, and how long the printed text becomes: reckoned before it is made, since a short
// text can name a wide table thousands of times.
import { refusedLimit } from './refusal.ts'
import type { Source } from './source.ts'

/** Characters: BigQuery takes a query of 1 MB. */
const PRINTED_MAX = 900_000
/** What the words around a sub-select come to. */
const AROUND = 60

/** By table, its list as it is printed. */
export class PrintedColumns {
  readonly #words: ReadonlySet<string>
  readonly #prefix: string
  readonly #whole = new Map<Source, Printed>()
  readonly #used = new Map<Source, Printed>()

  /** `words`: every name of the text, in lower case; `prefix`: what stands for the table inside its sub-select. */
  constructor(words: ReadonlySet<string>, prefix: string) {
    this.#words = words
    this.#prefix = prefix
  }

  /** All that is exposed where rows are read whole; else what the text names: an older shard need not have the rest. */
  of(source: Source, isWhole: boolean): Printed {
    const known = isWhole ? this.#whole : this.#used
    const made = known.get(source) ?? this.#print(source, isWhole)
    known.set(source, made)
    return made
  }

  #print({ columns }: Source, isWhole: boolean): Printed {
    const used = isWhole ? columns : columns.filter((name) => this.#words.has(name.toLowerCase()))
    const names = used.length > 0 ? used : columns.slice(0, 1)
    return { names, list: names.map((name) => `${this.#prefix}.\`${name}\``).join(', ') }
  }

  /** Throws Refusal where so many tables make too long a text. */
  check(read: Iterable<{ readonly source: Source; readonly isWhole: boolean }>, textLength: number): void {
    let length = textLength
    for (const { source, isWhole } of read) {
      length += this.of(source, isWhole).list.length + AROUND
      for (const suffix of source.suffixes?.list ?? []) length += suffix.length + 4
      if (length > PRINTED_MAX) throw refusedLimit('length', 'the query reads too many columns at once', -1)
    }
  }
}

interface Printed {
  readonly names: readonly string[]
  readonly list: string
}
