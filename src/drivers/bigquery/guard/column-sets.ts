// The columns that the parts of a query show, collected by identity. Every table and every list of names is one set and has
// one bit; what a star, a join or a WITH query shows is a mask of bits. So a query that repeats `a.*` a thousand times copies
// no name, and asking whether a name is among the columns is one AND.
import type { Source } from './source.ts'

/** A union of sets, one bit each. */
export type Columns = bigint

export const NO_COLUMNS: Columns = 0n

interface TableSet {
  readonly names: ReadonlySet<string>
  readonly bit: Columns
}

export class ColumnSets {
  /** By bit: the names as they are written. */
  readonly #lists: (readonly string[])[] = []
  /** The lists that hold a name, by the name in lower case. Tables are asked themselves: a query reads at most 50. */
  readonly #listed = new Map<string, Columns>()
  readonly #tables = new Map<Source, TableSet>()

  ofTable(source: Source): Columns {
    const known = this.#tables.get(source)
    if (known !== undefined) return known.bit
    const bit = this.#add(source.columns)
    this.#tables.set(source, { names: source.names, bit })
    return bit
  }

  /** `isTold` is false where the names only may be columns: a hint leaves them out. */
  ofNames(names: readonly string[], isTold = true): Columns {
    if (names.length === 0) return NO_COLUMNS
    const bit = this.#add(isTold ? names : [])
    for (const name of names) {
      const key = name.toLowerCase()
      this.#listed.set(key, (this.#listed.get(key) ?? NO_COLUMNS) | bit)
    }
    return bit
  }

  /** `name` in lower case. */
  has(columns: Columns, name: string): boolean {
    if ((columns & (this.#listed.get(name) ?? NO_COLUMNS)) !== NO_COLUMNS) return true
    for (const { names, bit } of this.#tables.values())
      if ((columns & bit) !== NO_COLUMNS && names.has(name)) return true
    return false
  }

  /** The first `most` names in a union, in the order of the text; one may stand in several lists. */
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
