// The columns a text may rest on: its own table's by their name, those of other tables as `schema.table.column`. A name
// that the own table knows is always its own, so that no text is shown for a namesake's sake.
import type { Catalog, CatalogTable } from '../drivers/driver.ts'

/** What a text about one table can rest on, in a catalog: all of it, or cut to an exposure. */
export class RestingPlace {
  readonly #own: ReadonlyMap<string, string>
  readonly #others: ReadonlyMap<string, string>

  /** `table` is null where it is not in the catalog; `others` are all columns of it (othersOf). */
  constructor(table: CatalogTable | null, others: ReadonlyMap<string, string>) {
    this.#own = new Map(table?.columns.map((column) => [column.name, column.type]))
    this.#others = others
  }

  isOwn(name: string): boolean {
    return this.#own.has(name)
  }

  /** The type of a column, or undefined where there is none of this name. */
  typeOf(name: string): string | undefined {
    return this.#own.get(name) ?? this.#others.get(name)
  }
}

/** Every column of a catalog by its full name, with its type. */
export function othersOf(catalog: Pick<Catalog, 'tables'> | null): ReadonlyMap<string, string> {
  const all = new Map<string, string>()
  for (const { schema, table, columns } of catalog?.tables ?? []) {
    for (const { name, type } of columns) all.set(fullName({ schema, table, column: name }), type)
  }
  return all
}

export function fullName(at: { readonly schema: string; readonly table: string; readonly column: string }): string {
  return `${at.schema}.${at.table}.${at.column}`
}
