// The description of a datasource: what of the stored snapshot is exposed, or for its managers all of it. Never asks
// the database. Written once a pair of versions, then served as the text it is.
import { createHash } from 'node:crypto'
import type { Audit } from '../audit/audit.ts'
import type { Call } from '../auth/caller.ts'
import type { Catalog, CatalogTable } from '../drivers/driver.ts'
import { BoundedMap } from '../exposure/bounded-map.ts'
import type { Catalogs } from '../exposure/catalogs.ts'
import { tableKey } from '../exposure/cut.ts'
import type { Store } from '../store/open.ts'
import { roleAtLeast } from '../teams/access.ts'
import { roleRequired } from '../teams/belong.ts'
import { documentedOf, type Documented } from './documented.ts'
import { knownOf, type Known } from './known.ts'
import type { Reached } from './reach.ts'
import { notIntrospected } from './refusals.ts'

/** JSON already written, and the tag that stands for it. */
export interface Description {
  readonly json: string
  readonly etag: string
  readonly headers: Readonly<Record<string, string>>
}

interface Deps {
  readonly store: Pick<Store, 'db'>
  readonly audit: Audit
  readonly catalogs: Catalogs
  readonly descriptions: Descriptions
}

/** What was written already, as long as the versions stand that it was written of. */
export interface Descriptions {
  readonly written: BoundedMap<string, Description>
  /** Part of several: what is known of values outlasts a publication. */
  readonly known: BoundedMap<string, Known>
}

const ENTRIES_MAX = 500
const CHARS_MAX = 64 * 1024 * 1024
const KNOWN_CHARS_MAX = 16 * 1024 * 1024
/** Nobody but the caller may keep it, and only to be asked again with its tag. */
const HEADERS = { 'cache-control': 'private, no-cache', vary: 'Authorization' } as const

export function openDescriptions(): Descriptions {
  return {
    written: new BoundedMap(ENTRIES_MAX, CHARS_MAX),
    known: new BoundedMap(ENTRIES_MAX, KNOWN_CHARS_MAX),
  }
}

/** `full`: everything introspected; throws ROLE_REQUIRED below ADMIN, then NOT_CONNECTED where nothing was. */
export async function describeDatasource(
  deps: Deps,
  call: Call,
  at: Reached,
  ask: { readonly full: boolean },
): Promise<Description> {
  const place = { teamId: at.teamId, datasourceId: at.id }
  try {
    const description = ask.full ? await describeFull(deps, at) : await describeExposed(deps, at)
    deps.audit.record(call, { ...place, outcome: 'ANSWERED' })
    return description
  } catch (error) {
    deps.audit.refused(call, place, error)
    throw error
  }
}

async function describeExposed(deps: Deps, at: Reached): Promise<Description> {
  return await written(deps, at, 'e', async () => {
    const [exposed, full] = await Promise.all([deps.catalogs.exposed(at.row), deps.catalogs.full(at.row)])
    const known = await knownNow(deps, at, exposed)
    const documented = await documentedOf(deps, at, exposed, full)
    return textOf(at, exposed?.capturedAt ?? null, exposed?.tables ?? [], known, documented)
  })
}

async function describeFull(deps: Deps, at: Reached): Promise<Description> {
  if (!roleAtLeast(at.membership.role, 'ADMIN')) throw roleRequired('ADMIN')
  const full = await deps.catalogs.full(at.row)
  if (full === null) throw notIntrospected()
  return await written(deps, at, 'f', async () => {
    const exposed = await deps.catalogs.exposed(at.row)
    const shown = new Map(exposed?.tables.map((table) => [tableKey(table.schema, table.table), table]))
    const tables = full.tables.map((table) => asFull(table, shown.get(tableKey(table.schema, table.table))))
    const known = await knownNow(deps, at, exposed)
    return textOf(at, full.capturedAt, tables, known, await documentedOf(deps, at, exposed, full))
  })
}

async function knownNow(deps: Deps, { id, row }: Reached, exposed: Catalog | null): Promise<Known> {
  const key = [id, row.catalog_version, row.exposure_version, row.profile_version].join('/')
  const before = deps.descriptions.known.get(key)
  if (before !== undefined) return before
  const known = await knownOf(deps.store.db, id, exposed)
  deps.descriptions.known.set(key, known, known.weight)
  return known
}

async function written(deps: Deps, at: Reached, part: 'e' | 'f', write: () => Promise<string>): Promise<Description> {
  const { row } = at
  const versions = [row.catalog_version, row.exposure_version, row.profile_version, row.published_version]
  const key = `${part}/${row.id}/${versions.join('/')}/${row.name}`
  const known = deps.descriptions.written.get(key)
  if (known !== undefined) return known
  const json = await write()
  const hash = createHash('sha256').update(json).digest('base64url').slice(0, 27)
  const description = { json, etag: `"${part}-${hash}"`, headers: HEADERS }
  deps.descriptions.written.set(key, description, json.length)
  return description
}

/** What is seen of values is told of exposed columns only, even to those who may see every name. */
function asFull(table: CatalogTable, exposed: CatalogTable | undefined): CatalogTable {
  const shown = new Set(exposed?.columns.map((column) => column.name))
  const columns = table.columns.map(({ signals, ...column }) =>
    signals !== undefined && shown.has(column.name) ? { ...column, signals } : column,
  )
  return { ...table, columns, columnsRestricted: exposed?.columnsRestricted === true }
}

function textOf(
  at: Reached,
  capturedAt: string | null,
  tables: readonly CatalogTable[],
  known: Known,
  documented: Documented,
): string {
  const head = {
    id: at.id,
    name: at.row.name,
    type: at.row.type,
    vocabulary: at.driver.vocabulary,
    schemaCapturedAt: capturedAt,
    profileCapturedAt: known.capturedAt,
  }
  return withLast(head, 'tables', `[${tables.map((table) => describeTable(table, known, documented)).join(',')}]`)
}

function describeTable(table: CatalogTable, known: Known, documented: Documented): string {
  const stats = known.statsOf(table)
  const said = documented(table)
  const head = {
    schema: table.schema,
    table: table.table,
    description: said.description ?? table.description,
    documentation: said.documentation,
    estimatedRows: table.estimatedRows,
    columnsRestricted: table.columnsRestricted ?? false,
    indexes: table.indexes,
  }
  const columns = table.columns.map((column) => {
    const about = {
      name: column.name,
      type: column.type,
      nullable: column.nullable,
      primaryKey: column.primaryKey,
      references: column.references,
      description: said.descriptionOf(column.name) ?? column.description,
    }
    return withLast(about, 'stats', stats.get(column.name) ?? 'null')
  })
  return withLast(head, 'columns', `[${columns.join(',')}]`)
}

/** An object as JSON, with a last member whose value is JSON already. */
function withLast(head: object, name: string, json: string): string {
  return `${JSON.stringify(head).slice(0, -1)},"${name}":${json}}`
}
