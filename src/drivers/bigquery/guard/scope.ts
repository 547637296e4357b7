// What is in sight where a path stands: the items of FROM so far, those of the queries around, and the WITH queries. Names
// are compared as GoogleSQL does, without case. Sets of names are shared, never copied: a short text can name wide tables
// often.

/** Names of columns in lower case, in as many sets as they came from. */
export type Columns = readonly ReadonlySet<string>[]

/** One item of FROM. */
export interface Entry {
  /** Lower case; empty where nothing names it. */
  readonly alias: string
  /** As far as they are known. */
  readonly columns: Columns
  /** Our names of pseudo columns that its sub-select returns besides. */
  readonly exports: readonly string[]
  /** Somebody reads the whole row: a star, a pivot, the alias itself. */
  isWhole: boolean
}

export function entryOf(alias: string, columns: Columns, exports: readonly string[] = []): Entry {
  return { alias: alias.toLowerCase(), columns, exports, isWhole: false }
}

/** What a bare star shows. */
interface Everything {
  readonly columns: Columns
  readonly exports: readonly string[]
}

export class Scope {
  readonly #outer: Scope | null
  readonly #entries: Entry[] = []
  readonly #aliases = new Map<string, Entry>()
  readonly #columns = new Set<ReadonlySet<string>>()
  #all: Everything | null = null
  /** A join of its own items is USING a pseudo column. */
  isJoinedByPseudo = false

  constructor(outer: Scope | null) {
    this.#outer = outer
  }

  get entries(): readonly Entry[] {
    return this.#entries
  }

  add(entry: Entry): Entry {
    this.#all = null
    this.#entries.push(entry)
    if (entry.alias !== '' && !this.#aliases.has(entry.alias)) this.#aliases.set(entry.alias, entry)
    for (const names of entry.columns) this.#columns.add(names)
    return entry
  }

  /** Whether a path that begins with this name is something in sight, rather than a dataset. */
  has(name: string): boolean {
    const key = name.toLowerCase()
    if (this.#aliases.has(key)) return true
    for (const names of this.#columns) if (names.has(key)) return true
    return this.#outer?.has(name) ?? false
  }

  /** The item that bears this alias, the nearest one. */
  item(alias: string): Entry | null {
    return this.#aliases.get(alias.toLowerCase()) ?? this.#outer?.item(alias) ?? null
  }

  /** Its own items as a bare star shows them: their rows are read whole. */
  readAll(): Everything {
    if (this.#all !== null) return this.#all
    for (const entry of this.#entries) entry.isWhole = true
    const exports = new Set(this.#entries.flatMap((entry) => entry.exports))
    this.#all = { columns: [...this.#columns], exports: [...exports] }
    return this.#all
  }
}

/** WITH queries in sight, the nearest first. */
export interface Ctes {
  readonly name: string
  readonly columns: Columns
  readonly outer: Ctes | null
}

export function cteOf(ctes: Ctes | null, name: string): Ctes | null {
  const key = name.toLowerCase()
  for (let each = ctes; each !== null; each = each.outer) if (each.name === key) return each
  return null
}
