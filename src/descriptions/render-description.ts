// Renders a description as JSON in UTF-8: the exposed tables and columns, or the whole catalog.
import type { Catalog, CatalogTable } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import type { Catalogs } from '../exposure/catalog-cache.ts'
import type { Store } from '../store/open.ts'
import { publishedTextsOf, type Documented, type Published } from './published-texts.ts'
import { columnStatsOf, type Known, type Seen } from './column-stats.ts'
import type { Reached } from '../datasources/require-reach.ts'
import { joinedTables, type JoinedTables } from './join-tables.ts'

/** 'e' means the exposed tables and columns, 'f' the whole (full) catalog. */
export type Part = 'e' | 'f'

export type Described = Pick<Reached, 'id' | 'row' | 'driver'>

export interface RenderDeps {
  readonly store: Pick<Store, 'db'>
  readonly catalogs: Catalogs
  readonly stats: Seen
  readonly published: Published
}

/** Statistics and documentation cover only exposed columns, even in the whole catalog. */
export async function renderDescription(deps: RenderDeps, at: Described, part: Part): Promise<JoinedTables> {
  const [exposed, full] = await Promise.all([deps.catalogs.exposed(at.row), deps.catalogs.full(at.row)])
  const known = await columnStatsOf({ db: deps.store.db, seen: deps.stats }, at.id, exposed, (names) =>
    at.driver.typed(names),
  )
  const about = { known, documented: await publishedTextsOf(deps, at, exposed, full) }
  const catalog = part === 'e' ? exposed : full
  const shown = part === 'e' ? null : byKey(exposed)
  const head = {
    id: at.id,
    name: at.row.name,
    type: at.row.type,
    vocabulary: at.driver.vocabulary,
    schemaCapturedAt: catalog?.capturedAt ?? null,
    profileCapturedAt: known.capturedAt,
  }
  return await joinedTables(`${JSON.stringify(head).slice(0, -1)},"tables":[`, catalog?.tables ?? [], ']}', (table) => {
    const cut = shown === null ? table : shown.get(tableKey(table.schema, table.table))
    return [tableText(table, cut, about)]
  })
}

function byKey(catalog: Catalog | null): ReadonlyMap<string, CatalogTable> {
  return new Map(catalog?.tables.map((table) => [tableKey(table.schema, table.table), table]))
}

/** `exposed` has only the exposed columns of the table, and is undefined for a hidden table. */
function tableText(
  table: CatalogTable,
  exposed: CatalogTable | undefined,
  { known, documented }: { readonly known: Known; readonly documented: Documented },
): string {
  const said = documented(table)
  const statsOf = exposed === undefined ? () => null : known.statsOf(exposed)
  let next = 0
  const columns = table.columns.map((column) => {
    const { name, type, nullable, primaryKey, references } = column
    // Exposed columns are in the order of the table.
    const shown = exposed?.columns[next]
    const isShown = shown?.name === name
    if (isShown) next++
    const description = said.descriptionOf(name) ?? column.description
    return { name, type, nullable, primaryKey, references, description, stats: isShown ? statsOf(shown) : null }
  })
  return JSON.stringify({
    schema: table.schema,
    table: table.table,
    description: said.description ?? table.description,
    documentation: said.documentation,
    estimatedRows: table.estimatedRows,
    columnsRestricted: exposed?.columnsRestricted ?? false,
    indexes: table.indexes,
    columns,
  })
}
