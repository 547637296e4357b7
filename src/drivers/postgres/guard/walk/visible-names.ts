// Stores the names that FROM makes visible: tables, columns, and the columns of `*` in order. A join extends the object
// of its left side instead of copying it, so a chain of joins takes linear time.
import type { Column, Item } from './from-items.ts'

/** The columns by name. Null if two columns have the name. */
type Index = Map<string, Column | null>

/** The columns of `*`. After a join with USING: the columns of USING, then the other columns of both sides. */
type Star =
  | readonly Column[]
  | { readonly merged: readonly Column[]; readonly names: ReadonlySet<string>; readonly sides: readonly Star[] }

/** A longer join does not list its columns: for a long chain of joins, this would take quadratic time. */
const LISTED_MAX = 64

export class Shown {
  readonly items: Item[] = []
  /** The number of columns of `*`. */
  count = 0
  readonly #tables = new Map<string, Item[]>()
  readonly #index: Index = new Map()
  /** Columns that are not in #index yet. They are added when a column is looked up. */
  #waiting: (readonly Column[] | Index)[] = []
  #star: Star = []

  static of(item: Item): Shown {
    const shown = new Shown()
    shown.add(item)
    shown.count = item.columns.length
    shown.#waiting.push(item.columns)
    shown.#star = item.columns
    return shown
  }

  /** Returns the column that an unqualified name means, null if several columns have it, or undefined if none has. */
  column(name: string): Column | null | undefined {
    return this.#indexed().get(name)
  }

  names(): Iterable<string> {
    return this.#indexed().keys()
  }

  /** Returns the FROM items that `name` or `schema.name` means. */
  tables(name: string, schema: string | undefined): readonly Item[] {
    const found = this.#tables.get(name) ?? []
    return schema === undefined ? found : found.filter((item) => item.schema === schema)
  }

  /** Adds the table name of an item without its columns, as for the alias of USING. */
  add(item: Item): void {
    this.items.push(item)
    if (item.name === null) return
    const known = this.#tables.get(item.name)
    if (known) known.push(item)
    else this.#tables.set(item.name, [item])
  }

  star(): readonly Column[] {
    return listed(this.#star)
  }

  /**
   * Adds the names on the right of a join or comma. `merged` are the columns of USING. Do not use `other` afterwards.
   */
  take(other: Shown, merged: readonly Column[]): void {
    const names = new Set(merged.map((column) => column.name))
    if (merged.length > 0) this.#merge(other, merged, names)
    else this.#waiting.push(...(other.#index.size > 0 ? [other.#indexed()] : other.#waiting))
    for (const item of other.items) this.add(item)
    this.count += other.count - merged.length
    this.#star = { merged, names, sides: [this.#star, other.#star] }
    if (this.count <= LISTED_MAX) this.#star = listed(this.#star)
  }

  #merge(other: Shown, merged: readonly Column[], names: ReadonlySet<string>): void {
    const index = this.#indexed()
    for (const [name, column] of other.#indexed()) {
      if (!names.has(name)) index.set(name, index.has(name) ? null : column)
    }
    for (const column of merged) index.set(column.name, column)
  }

  #indexed(): Index {
    if (this.#waiting.length === 0) return this.#index
    for (const part of this.#waiting) {
      const columns = part instanceof Map ? part : part.map((column) => [column.name, column] as const)
      for (const [name, column] of columns) this.#index.set(name, this.#index.has(name) ? null : column)
    }
    this.#waiting = []
    return this.#index
  }
}

function listed(star: Star): readonly Column[] {
  if (isList(star)) return star
  const out: Column[] = []
  collect(star, new Map(), out)
  return out
}

/** Adds the columns of `*` to `out`. For each name, `taken` holds the number of enclosing joins with it in USING. */
function collect(star: Star, taken: Map<string, number>, out: Column[]): void {
  const list = isList(star) ? star : star.merged
  for (const column of list) if (!taken.get(column.name)) out.push(column)
  if (isList(star)) return
  for (const name of star.names) taken.set(name, (taken.get(name) ?? 0) + 1)
  for (const side of star.sides) collect(side, taken, out)
  for (const name of star.names) taken.set(name, (taken.get(name) ?? 0) - 1)
}

function isList(star: Star): star is readonly Column[] {
  return Array.isArray(star)
}
