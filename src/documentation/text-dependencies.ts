// A text lists the columns that it depends on. A column of the text's own table is listed by its name, and any other
// column as `schema.table.column`. Names may contain dots: if the own table has a column `a.b.c`, then `a.b.c` means
// this column, even if there is a table `a.b` with a column `c`. So an exposed column of another table never makes the
// text visible.
import type { Catalog, CatalogTable } from '../drivers/driver.ts'

/** The columns that a text about one table can depend on, in the whole catalog or in its exposed part. */
export class RestingPlace {
  readonly #table: CatalogTable | null
  readonly #others: Others
  #types: ReadonlyMap<string, string> | null = null

  constructor(table: CatalogTable | null, others: Others) {
    this.#table = table
    this.#others = others
  }

  /** Built when it is first needed. In many tables, no text depends on a column. */
  get #own(): ReadonlyMap<string, string> {
    return (this.#types ??= new Map(this.#table?.columns.map((column) => [column.name, column.type])))
  }

  isOwn(name: string): boolean {
    return this.#own.has(name)
  }

  typeOf(name: string): string | undefined {
    return this.#own.get(name) ?? this.#others.typesOf(name)[0]
  }

  /** How many columns the name may mean. `a.b.c` may mean column `c` of table `a.b`, or column `b.c` of table `a`. */
  meanings(name: string): number {
    return this.isOwn(name) ? 1 : this.#others.typesOf(name).length
  }
}

/** Every column of a catalog by its full name. Build one instance per catalog, for all tables. */
export class Others {
  /** The key is `schema.table`. Several tables may have the same key, because names may contain dots. */
  readonly #tables = new Map<string, CatalogTable[]>()

  constructor(catalog: Pick<Catalog, 'tables'> | null) {
    for (const table of catalog?.tables ?? []) {
      const name = `${table.schema}.${table.table}`
      this.#tables.set(name, [...(this.#tables.get(name) ?? []), table])
    }
  }

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
