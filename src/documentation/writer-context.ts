// The data that the rules and the model get about a table: its exposed columns, those of related tables, and its stored
// profile.
import type { Catalog, CatalogColumn, CatalogTable, Driver } from '../drivers/driver.ts'
import type { DatasourceType } from '../drivers/datasource-type.ts'
import type { KeptColumn, KeptProfile } from '../profiles/stored-profiles.ts'

/** A foreign key of another exposed table that references this table. */
interface Pointer {
  readonly schema: string
  readonly table: string
  readonly column: string
  readonly to: string
}

export interface WriterContext {
  readonly type: DatasourceType
  readonly vocabulary: Driver['vocabulary']
  /** Quotes names for a query. */
  readonly typed: Driver['typed']
  readonly table: CatalogTable
  readonly profile: ReadonlyMap<string, KeptColumn>
  readonly pointers: readonly Pointer[]
  /** The primary keys of exposed tables, if the key is a single column. */
  readonly keys: readonly Key[]
}

export interface Key {
  readonly schema: string
  readonly table: string
  readonly column: CatalogColumn
  /** The column by which people recognize a row, or else the key column. */
  readonly label: string
}

/** Leaves out tables that are not exposed. */
export function writerContexts(
  driver: Pick<Driver, 'type' | 'vocabulary' | 'typed'>,
  exposed: Pick<Catalog, 'tables'>,
  profiles: ReadonlyMap<string, KeptProfile>,
  keyOf: (schema: string, table: string) => string,
  isAsked: (table: CatalogTable) => boolean,
): readonly WriterContext[] {
  const keys = exposed.tables.flatMap(singleKey)
  const pointers = new Map<string, Pointer[]>()
  for (const { schema, table, columns } of exposed.tables) {
    for (const { name, references } of columns) {
      if (references === null) continue
      const to = keyOf(references.schema, references.table)
      const list = pointers.get(to) ?? []
      list.push({ schema, table, column: name, to: references.column })
      pointers.set(to, list)
    }
  }
  return exposed.tables.filter(isAsked).map((table) => ({
    type: driver.type,
    vocabulary: driver.vocabulary,
    typed: (names) => driver.typed(names),
    table,
    profile: profileOf(table, profiles.get(keyOf(table.schema, table.table))),
    pointers: pointers.get(keyOf(table.schema, table.table)) ?? [],
    keys,
  }))
}

/** Drops columns that are not exposed, and columns whose type has changed since the profile. */
function profileOf(table: CatalogTable, kept: KeptProfile | undefined): ReadonlyMap<string, KeptColumn> {
  const types = new Map(table.columns.map((column) => [column.name, column.type]))
  return new Map(
    kept?.columns.filter(({ name, type }) => types.get(name) === type).map((column) => [column.name, column]),
  )
}

function singleKey({ schema, table, columns }: CatalogTable): Key[] {
  const keys = columns.filter((column) => column.primaryKey)
  const [key] = keys
  if (key === undefined || keys.length > 1) return []
  return [{ schema, table, column: key, label: labelOf(columns) ?? key.name }]
}

const LABELS = ['name', 'label', 'code', 'slug', 'sku']

function labelOf(columns: readonly CatalogColumn[]): string | undefined {
  return LABELS.find((label) => columns.some((column) => column.name.toLowerCase() === label))
}
