// The columns that are visible in each part of a query. Each table and each list of names has one bit. The columns of a
// star, a join or a WITH query are a mask of these bits. So a query that repeats `a.*` a thousand times copies no
// names.
import type { Source } from './source.ts'
import type { Work } from './work-budget.ts'

/** A union of tables and lists, one bit each. */
export type Columns = bigint

export const NO_COLUMNS: Columns = 0n

export class ColumnSets {
  /** The names as written. The index is the bit. */
  readonly #lists: (readonly string[])[] = []
  /**
   * For each name in lower case, the bits of the lists that contain it, and of the tables that were searched for it.
   */
  readonly #listed = new Map<string, Columns>()
  /** For each name, how many of the tables were searched for it. */
  readonly #searched = new Map<string, number>()
  readonly #tables: Source[] = []
  readonly #bits = new Map<Source, Columns>()
  readonly #work: Work

  constructor(work: Work) {
    this.#work = work
  }

  ofTable(source: Source): Columns {
    const known = this.#bits.get(source)
    if (known !== undefined) return known
    const bit = this.#add(source.columns)
    this.#tables.push(source)
    this.#bits.set(source, bit)
    return bit
  }

  /** If `isCertain` is false, some names may be no columns, and no hint contains them. */
  ofNames(names: readonly string[], isCertain = true): Columns {
    if (names.length === 0) return NO_COLUMNS
    const bit = this.#add(isCertain ? names : [])
    for (const name of names) this.#list(name.toLowerCase(), bit)
    return bit
  }

  /** Returns the sets that contain the name, which must be in lower case. Each table is searched once for a name. */
  holding(name: string): Columns {
    const from = this.#searched.get(name) ?? 0
    if (from < this.#tables.length) {
      this.#work.spend(this.#tables.length - from)
      this.#searched.set(name, this.#tables.length)
      for (const table of this.#tables.slice(from))
        if (table.names.has(name)) this.#list(name, this.#bits.get(table) ?? NO_COLUMNS)
    }
    return this.#listed.get(name) ?? NO_COLUMNS
  }

  /** `name` must be in lower case. */
  has(columns: Columns, name: string): boolean {
    return (columns & this.holding(name)) !== NO_COLUMNS
  }

  #list(name: string, bit: Columns): void {
    this.#listed.set(name, (this.#listed.get(name) ?? NO_COLUMNS) | bit)
  }

  /**
   * Returns at most `most` names, list by list, in the order in which the lists were added. A name in several lists
   * appears several times.
   */
  *namesOf(columns: Columns, most: number): Iterable<string> {
    let left = most
    // To shift the mask for each list would take as long as the mask is.
    const bits = columns.toString(2)
    for (const [at, names] of this.#lists.entries()) {
      if (left <= 0) return
      if (bits.at(-1 - at) !== '1') continue
      yield* names.slice(0, left)
      left -= names.length
    }
  }

  #add(names: readonly string[]): Columns {
    return 1n << BigInt(this.#lists.push(names) - 1)
  }
}
