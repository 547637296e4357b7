// What is in sight where a path stands: the items of FROM so far, those of the queries around, and the WITH queries. Names
// are compared as GoogleSQL does, without case.

/** One item of FROM. */
export interface Entry {
  /** Lower case; empty where nothing names it. */
  readonly alias: string
  /** Names of its columns as far as they are known, in lower case. */
  readonly columns: readonly string[]
  /** Our names of pseudo columns that its sub-select returns besides. */
  readonly exports: readonly string[]
  /** Somebody reads the whole row: a star, a pivot, the alias itself. */
  isWhole: boolean
}

export class Scope {
  readonly #outer: Scope | null
  readonly #entries: Entry[] = []
  readonly #aliases = new Map<string, Entry>()
  readonly #columns = new Set<string>()

  constructor(outer: Scope | null) {
    this.#outer = outer
  }

  get entries(): readonly Entry[] {
    return this.#entries
  }

  add(entry: Entry): Entry {
    this.#entries.push(entry)
    if (entry.alias !== '' && !this.#aliases.has(entry.alias)) this.#aliases.set(entry.alias, entry)
    for (const name of entry.columns) this.#columns.add(name)
    return entry
  }

  /** Whether a path that begins with this name is something in sight, rather than a dataset. */
  has(name: string): boolean {
    const key = name.toLowerCase()
    return this.#aliases.has(key) || this.#columns.has(key) || (this.#outer?.has(name) ?? false)
  }

  /** The item that bears this alias, the nearest one. */
  item(alias: string): Entry | null {
    return this.#aliases.get(alias.toLowerCase()) ?? this.#outer?.item(alias) ?? null
  }
}

/** WITH queries in sight, the nearest first. */
export interface Ctes {
  readonly name: string
  /** As far as they are known, in lower case. */
  readonly columns: readonly string[]
  readonly outer: Ctes | null
}

export function cteOf(ctes: Ctes | null, name: string): Ctes | null {
  const key = name.toLowerCase()
  for (let each = ctes; each !== null; each = each.outer) if (each.name === key) return each
  return null
}
