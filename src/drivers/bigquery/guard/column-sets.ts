// The columns that are visible in each part of a query. Each table and each list of names has one bit. The columns of a
// star, a join or a WITH query are a mask of such bits. So a query that repeats `a.*` a thousand times copies no names.
import type { Source } from './source.ts'

/** A union of sets, one bit each. */
export type Columns = bigint

export const NO_COLUMNS: Columns = 0n

interface TableSet {
  readonly names: ReadonlySet<string>
  readonly bit: Columns
}

export class ColumnSets {
  /** The names as written. The index is the bit. */
  readonly #lists: (readonly string[])[] = []
  /**
   * For each name in lower case, the bits of the lists that contain it. Tables are not in this map: a query reads at
   * most 50, so they are searched one by one.
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

  /** `isCertain` is false if some names may be no columns. Then no hint contains these names. */
  ofNames(names: readonly string[], isCertain = true): Columns {
    if (names.length === 0) return NO_COLUMNS
    const bit = this.#add(isCertain ? names : [])
    for (const name of names) {
      const key = name.toLowerCase()
      this.#listed.set(key, (this.#listed.get(key) ?? NO_COLUMNS) | bit)
    }
    return bit
  }

  /** `name` must be in lower case. */
  has(columns: Columns, name: string): boolean {
    if ((columns & (this.#listed.get(name) ?? NO_COLUMNS)) !== NO_COLUMNS) return true
    for (const { names, bit } of this.#tables.values())
      if ((columns & bit) !== NO_COLUMNS && names.has(name)) return true
    return false
  }

  /**
   * Returns at most `most` names, list by list, in the order in which the lists were added. A name in several lists
   * appears several times.
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
