// Finds the published documentation of exposed tables and columns for a description.
import type { Catalog, CatalogTable } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import { publishedOf, publishedRevision } from '../documentation/publish.ts'
import { visibleTexts, Visibility, type VisibleTexts, type Words } from '../documentation/visible-texts.ts'
import { BoundedMap } from '../bounded-map.ts'
import type { DatasourceId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { Reached } from '../datasources/require-reach.ts'

interface DocumentationObject {
  readonly summary?: string
  readonly statements: readonly string[]
  readonly examples?: string
  readonly publishedAt: string
}

/** The texts of one table. If `description` is null, the database's comment is shown. */
interface DocumentedTable {
  readonly documentation: DocumentationObject | null
  readonly description: string | null
  descriptionOf(column: string): string | null
}

export type Documented = (table: Pick<CatalogTable, 'schema' | 'table'>) => DocumentedTable

/** A publication is reused while its stamp is unchanged. */
export type Published = BoundedMap<DatasourceId, Publication>

interface Publication {
  /** The version of the publication, and how often texts were withdrawn from it. */
  readonly stamp: string
  readonly tables: Awaited<ReturnType<typeof publishedOf>>
  readonly words: Words
}

const DATASOURCES_MAX = 500
/** The maximum size of the cache, in characters of texts and names. In memory, they take several times as much. */
const CHARS_MAX = 4 * 1024 * 1024

export function openPublishedTexts(): Published {
  return new BoundedMap(DATASOURCES_MAX, CHARS_MAX)
}

export async function publishedTextsOf(
  deps: { readonly store: Pick<Store, 'db'>; readonly published: Published },
  at: Pick<Reached, 'id' | 'row'>,
  exposed: Catalog | null,
  full: Catalog | null,
): Promise<Documented> {
  const publishedAt = at.row.published_at
  if (publishedAt === null || exposed === null || full === null) return () => NOTHING
  const { tables, words } = await readOnce(deps, at)
  if (tables.size === 0) return () => NOTHING
  const sight = new Visibility(exposed, full, words)
  return (table) => {
    const published = tables.get(tableKey(table.schema, table.table))
    const visible = published === undefined ? null : sight.of(table)
    return published === undefined || visible === null
      ? NOTHING
      : tableOf(visibleTexts(published, visible), publishedAt)
  }
}

async function readOnce(
  deps: { readonly store: Pick<Store, 'db'>; readonly published: Published },
  { id, row }: Pick<Reached, 'id' | 'row'>,
): Promise<Publication> {
  const at = { id, published_version: row.published_version }
  const stamp = `${row.published_version}/${await publishedRevision(deps.store, at)}`
  const before = deps.published.get(id)
  if (before?.stamp === stamp) return before
  const tables = await publishedOf(deps.store, at)
  const publication = { stamp, tables, words: new Map() }
  deps.published.set(id, publication, weightOf(publication))
  return publication
}

function weightOf({ tables }: Publication): number {
  let sum = 0
  for (const { summary, examples, statements, columns } of tables.values()) {
    for (const published of [summary, examples, ...statements, ...columns.values()]) {
      if (published !== null) sum += published.text.length + published.restsOn.length * NAME_CHARS
    }
  }
  return sum
}

/** The assumed length of a column's full name. */
const NAME_CHARS = 50

const NOTHING: DocumentedTable = { documentation: null, description: null, descriptionOf: () => null }

function documentationOf(
  { summary, statements, examples }: Omit<VisibleTexts, 'columns'>,
  publishedAt: string,
): DocumentationObject {
  return { ...(summary !== null && { summary }), statements, ...(examples !== null && { examples }), publishedAt }
}

function tableOf({ columns, ...texts }: VisibleTexts, publishedAt: string): DocumentedTable {
  const nothing = texts.summary === null && texts.examples === null && texts.statements.length === 0
  return {
    documentation: nothing ? null : documentationOf(texts, publishedAt),
    description: texts.summary,
    descriptionOf: (column) => columns.get(column) ?? null,
  }
}
