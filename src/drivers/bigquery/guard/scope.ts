// What a path can name besides tables: the items of FROM so far, the items of outer queries, and WITH queries. Names
// ignore case, as in GoogleSQL.
import { NO_COLUMNS, type Columns, type ColumnSets } from './column-sets.ts'
import type { Work } from './work-budget.ts'

export interface Entry {
  /** In lower case. Empty if the item has no name. */
  readonly alias: string
  /** The columns of the item, as far as they are known. */
  readonly columns: Columns
  /** The generated names of the pseudo columns that the item's sub-select also returns. */
  readonly exports: readonly string[]
  /** True if the query reads whole rows, for example by a star, a pivot, a pipe, or the alias itself. */
  isWhole: boolean
}

export function entryOf(alias: string, columns: Columns, exports: readonly string[] = []): Entry {
  return { alias: alias.toLowerCase(), columns, exports, isWhole: false }
}

export interface Known {
  readonly sets: ColumnSets
  readonly work: Work
  /** The aliases of all scopes, in lower case. */
  readonly aliases: Set<string>
}

export class Scope {
  readonly outer: Scope | null
  readonly #known: Known
  #entries: Entry[] = []
  #aliases = new Map<string, Entry>()
  readonly #exports = new Set<string>()
  #columns = NO_COLUMNS
  /** The number of leading entries that are already marked as read whole. */
  #whole = 0
  isJoinedByPseudo = false

  constructor(known: Known, outer: Scope | null) {
    this.#known = known
    this.outer = outer
  }

  get isEmpty(): boolean {
    return this.#entries.length === 0
  }

  get columns(): Columns {
    return this.#columns
  }

  /** The generated names of the pseudo columns of all items. There are at most three. */
  get exports(): ReadonlySet<string> {
    return this.#exports
  }

  add(entry: Entry): Entry {
    this.#known.work.spend(1)
    this.#entries.push(entry)
    this.#columns |= entry.columns
    for (const name of entry.exports) this.#exports.add(name)
    if (entry.alias === '' || this.#aliases.has(entry.alias)) return entry
    this.#aliases.set(entry.alias, entry)
    this.#known.aliases.add(entry.alias)
    return entry
  }

  /**
   * Adds the items in parentheses, whose scope ends here. The smaller of the two scopes is copied into the larger one.
   */
  absorb(inside: Scope): void {
    const isLarger = inside.#entries.length > this.#entries.length
    const [entries, aliases] = isLarger ? [this.#entries, this.#aliases] : [inside.#entries, inside.#aliases]
    this.#known.work.spend(entries.length)
    if (isLarger) [this.#entries, this.#aliases, this.#whole] = [inside.#entries, inside.#aliases, 0]
    for (const entry of entries) this.#entries.push(entry)
    // If two items have the same alias, the alias means the item before the parentheses.
    for (const [alias, entry] of aliases) if (isLarger || !this.#aliases.has(alias)) this.#aliases.set(alias, entry)
    this.#columns |= inside.#columns
    for (const name of inside.#exports) this.#exports.add(name)
    if (inside.isJoinedByPseudo) this.isJoinedByPseudo = true
  }

  /** True if a path that starts with this name means a visible item, and not a dataset. */
  has(name: string): boolean {
    const key = name.toLowerCase()
    const { work, sets, aliases } = this.#known
    const isAlias = aliases.has(key)
    const holding = sets.holding(key)
    if (!isAlias && holding === NO_COLUMNS) return false
    for (let scope: Scope | null = this; scope !== null; scope = scope.outer) {
      work.spend(1)
      if ((isAlias && scope.#aliases.has(key)) || (scope.#columns & holding) !== NO_COLUMNS) return true
    }
    return false
  }

  item(alias: string): Entry | null {
    const key = alias.toLowerCase()
    const { work, aliases } = this.#known
    if (!aliases.has(key)) return null
    for (let scope: Scope | null = this; scope !== null; scope = scope.outer) {
      work.spend(1)
      const entry = scope.#aliases.get(key)
      if (entry !== undefined) return entry
    }
    return null
  }

  readAll(): void {
    for (; this.#whole < this.#entries.length; this.#whole++) {
      const entry = this.#entries[this.#whole]
      if (entry !== undefined) entry.isWhole = true
    }
  }

  /** Returns at most `count` items, each with its first `most` names. The items of the innermost scope come first. */
  *items(count: number, most: number): Iterable<{ readonly alias: string; readonly names: readonly string[] }> {
    const { sets } = this.#known
    let left = count
    for (let scope: Scope | null = this; scope !== null; scope = scope.outer) {
      for (const { alias, columns } of scope.#entries) {
        if (left-- <= 0) return
        const names = [...sets.namesOf(columns, most)]
        if (names.length > 0) yield { alias, names }
      }
    }
  }

  /** The columns of the innermost scope come first. */
  *inSight(): Iterable<Columns> {
    for (let scope: Scope | null = this; scope !== null; scope = scope.outer) yield scope.#columns
  }
}

/** The WITH queries of one WITH clause, and those of outer clauses. */
export class Ctes {
  readonly #outer: Ctes | null
  readonly #columns = new Map<string, Columns>()

  constructor(outer: Ctes | null) {
    this.#outer = outer
  }

  /** A later query hides an earlier query of the same name. */
  add(name: string, columns: Columns): void {
    this.#columns.set(name.toLowerCase(), columns)
  }

  /** Returns the columns of the nearest WITH query of this name, or null if there is none. */
  find(name: string): Columns | null {
    const key = name.toLowerCase()
    for (let each: Ctes | null = this; each !== null; each = each.#outer) {
      const columns = each.#columns.get(key)
      if (columns !== undefined) return columns
    }
    return null
  }
}
