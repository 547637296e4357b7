// The columns a text may rest on: its own table's by their name, those of other tables as `schema.table.column`. A name
// that the own table knows is always its own, so that no text is shown for a namesake's sake.
import type { Catalog, CatalogTable } from '../drivers/driver.ts'

/** What a text about one table can rest on, in a catalog: all of it, or cut to an exposure. */
export class RestingPlace {
  readonly #table: CatalogTable | null
  readonly #others: Others
  #types: ReadonlyMap<string, string> | null = null

  /** `table` is null where it is not in the catalog; `others` are all columns of it. */
  constructor(table: CatalogTable | null, others: Others) {
    this.#table = table
    this.#others = others
  }

  /** Made when it is first asked for: about many tables no text rests on a column. */
  get #own(): ReadonlyMap<string, string> {
    return (this.#types ??= new Map(this.#table?.columns.map((column) => [column.name, column.type])))
  }

  isOwn(name: string): boolean {
    return this.#own.has(name)
  }

  /** The type of a column, or undefined where there is none of this name. */
  typeOf(name: string): string | undefined {
    return this.#own.get(name) ?? this.#others.typesOf(name)[0]
  }

  /** How many columns the name may mean: names may hold dots. */
  meanings(name: string): number {
    return this.isOwn(name) ? 1 : this.#others.typesOf(name).length
  }
}

/** Every column of a catalog by its full name; made once a catalog, however many tables are asked about. */
export class Others {
  /** By `schema.table`; names may hold dots, so several tables may read alike. */
  readonly #tables = new Map<string, CatalogTable[]>()

  constructor(catalog: Pick<Catalog, 'tables'> | null) {
    for (const table of catalog?.tables ?? []) {
      const name = `${table.schema}.${table.table}`
      this.#tables.set(name, [...(this.#tables.get(name) ?? []), table])
    }
  }

  /** The types of all columns that the name may mean. */
  typesOf(name: string): readonly string[] {
    const types: string[] = []
    for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1)) {
      const column = name.slice(dot + 1)
      for (const table of this.#tables.get(name.slice(0, dot)) ?? []) {
        const found = table.columns.find((each) => each.name === column)
        if (found !== undefined) types.push(found.type)
      }
    }
    return types
  }
}

export function fullName(at: { readonly schema: string; readonly table: string; readonly column: string }): string {
  return `${at.schema}.${at.table}.${at.column}`
}
