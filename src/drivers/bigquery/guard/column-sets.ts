// Sets of the columns that are visible in each part of a query. Each table and each list of names is one set with one
// bit. The columns of a star, a join or a WITH query are a mask of bits. A query that repeats `a.*` a thousand times
// therefore copies no names.
import type { Source } from './source.ts'

/** A union of sets, one bit each. */
export type Columns = bigint

export const NO_COLUMNS: Columns = 0n

interface TableSet {
  readonly names: ReadonlySet<string>
  readonly bit: Columns
}

export class ColumnSets {
  /** The names as written, by bit. */
  readonly #lists: (readonly string[])[] = []
  /**
   * The lists that contain each name, by the name in lower case. Tables are searched one by one, because a query reads
   * at most 50.
   */
  readonly #listed = new Map<string, Columns>()
  readonly #tables = new Map<Source, TableSet>()

  ofTable(source: Source): Columns {
    const known = this.#tables.get(source)
    if (known !== undefined) return known.bit
    const bit = this.#add(source.columns)
    this.#tables.set(source, { names: source.names, bit })
    return bit
  }

  /** Adds a list of names. `isCertain` is false if some names may not be columns. A hint then leaves the names out. */
  ofNames(names: readonly string[], isCertain = true): Columns {
    if (names.length === 0) return NO_COLUMNS
    const bit = this.#add(isCertain ? names : [])
    for (const name of names) {
      const key = name.toLowerCase()
      this.#listed.set(key, (this.#listed.get(key) ?? NO_COLUMNS) | bit)
    }
    return bit
  }

  /** Returns whether the columns contain the name. `name` is in lower case. */
  has(columns: Columns, name: string): boolean {
    if ((columns & (this.#listed.get(name) ?? NO_COLUMNS)) !== NO_COLUMNS) return true
    for (const { names, bit } of this.#tables.values())
      if ((columns & bit) !== NO_COLUMNS && names.has(name)) return true
    return false
  }

  /**
   * Returns the first `most` names of a union, in the order in which the lists were added. A name that is in several
   * lists appears several times.
   */
  *namesOf(columns: Columns, most: number): Iterable<string> {
    let left = most
    for (const [at, names] of this.#lists.entries()) {
      if (left <= 0) return
      if (!((columns >> BigInt(at)) & 1n)) continue
      yield* names.slice(0, left)
      left -= names.length
    }
  }

  #add(names: readonly string[]): Columns {
    return 1n << BigInt(this.#lists.push(names) - 1)
  }
}
