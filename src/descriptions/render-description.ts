// Renders a description as JSON in UTF-8: the exposed part, or everything. It never queries the database and never
// blocks the event loop for long.
import type { Catalog, CatalogColumn, CatalogTable } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import type { Catalogs } from '../exposure/catalogs.ts'
import type { Store } from '../store/open.ts'
import { publishedTextsOf, type Documented, type Published } from './published-texts.ts'
import { columnStatsOf, type Known, type Seen } from './column-stats.ts'
import type { Reached } from '../datasources/reach.ts'
import { joinedTables, type JoinedTables } from './joined-tables.ts'

/** 'e': the exposed part; 'f': everything introspected. */
export type Part = 'e' | 'f'

/** The datasource to describe; a Reached fits. */
export type Described = Pick<Reached, 'id' | 'row' | 'driver'>

export interface RenderDeps {
  readonly store: Pick<Store, 'db'>
  readonly catalogs: Catalogs
  readonly stats: Seen
  readonly published: Published
}

/** Statistics and documentation cover exposed columns only, even for readers who may see every name. */
export async function renderDescription(deps: RenderDeps, at: Described, part: Part): Promise<JoinedTables> {
  const [exposed, full] = await Promise.all([deps.catalogs.exposed(at.row), deps.catalogs.full(at.row)])
  const known = await columnStatsOf({ db: deps.store.db, seen: deps.stats }, at.id, exposed, (names) =>
    at.driver.typed(names),
  )
  const about = { known, documented: await publishedTextsOf(deps, at, exposed, full), columns: new Columns() }
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
    return tableTexts(table, cut, about)
  })
}

function byKey(catalog: Catalog | null): ReadonlyMap<string, CatalogTable> {
  return new Map(catalog?.tables.map((table) => [tableKey(table.schema, table.table), table]))
}

/**
 * `exposed` is the exposed part of the table, if any. Returns pieces: human texts may use two-byte strings, the rest
 * does not.
 */
function tableTexts(
  table: CatalogTable,
  exposed: CatalogTable | undefined,
  { known, documented, columns }: { readonly known: Known; readonly documented: Documented; readonly columns: Columns },
): readonly string[] {
  const said = documented(table)
  const head = {
    schema: table.schema,
    table: table.table,
    description: said.description ?? table.description,
    documentation: said.documentation,
    estimatedRows: table.estimatedRows,
    columnsRestricted: exposed?.columnsRestricted ?? false,
    indexes: table.indexes,
  }
  const statsOf = exposed === undefined ? () => 'null' : known.statsOf(exposed)
  let texts = ''
  let next = 0
  for (const column of table.columns) {
    // Exposed columns are in the same order.
    const shown = exposed?.columns[next]
    const isShown = shown?.name === column.name
    if (isShown) next++
    const text = columns.text(column, said.descriptionOf(column.name), isShown ? statsOf(shown) : 'null')
    texts += texts === '' ? text : `,${text}`
  }
  return [JSON.stringify(head).slice(0, -1), `,"columns":[${texts}]}`]
}

/** Writes columns by hand: there are tens of thousands, and JSON.stringify of an object takes three times as long. */
class Columns {
  /** The JSON of a column without reference and description, by its type. Most columns are alike. */
  readonly #plain = new Map<string, string>()

  text(column: CatalogColumn, said: string | null, stats: string): string {
    return `{"name":${JSON.stringify(column.name)},${this.#about(column, said ?? column.description)},"stats":${stats}}`
  }

  #about(column: CatalogColumn, description: string | null): string {
    if (column.references !== null || description !== null) return aboutColumn(column, description)
    const key = `${column.nullable ? 1 : 0}${column.primaryKey ? 1 : 0}${column.type}`
    const text = this.#plain.get(key) ?? aboutColumn(column, null)
    this.#plain.set(key, text)
    return text
  }
}

function aboutColumn({ type, nullable, primaryKey, references }: CatalogColumn, description: string | null): string {
  return JSON.stringify({ type, nullable, primaryKey, references, description }).slice(1, -1)
}
