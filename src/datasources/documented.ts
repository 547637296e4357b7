// What a description tells of the published documentation: of exposed tables and columns alone.
import type { Catalog, CatalogTable } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import { publishedOf } from '../documentation/publish.ts'
import { shownDocumentation, Sight, type ShownDocumentation } from '../documentation/shown.ts'
import type { Store } from '../store/open.ts'
import type { Reached } from './reach.ts'

/** The contract's documentation object. */
interface DocumentationObject {
  readonly summary: string | null
  readonly statements: readonly string[]
  readonly examples: string | null
  readonly publishedAt: string
}

/** What is told of one table; texts that override the database's comments are null where there are none. */
interface DocumentedTable {
  readonly documentation: DocumentationObject | null
  readonly description: string | null
  descriptionOf(column: string): string | null
}

/** By table of a description. */
export type Documented = (table: Pick<CatalogTable, 'schema' | 'table'>) => DocumentedTable

/** Of the exposed part, as it stands; `full` is what it was cut from. */
export async function documentedOf(
  deps: { readonly store: Pick<Store, 'db'> },
  at: Reached,
  exposed: Catalog | null,
  full: Catalog | null,
): Promise<Documented> {
  const published = await publishedOf(deps.store, { id: at.id, published_version: at.row.published_version })
  const publishedAt = at.row.published_at
  if (published.size === 0 || publishedAt === null || exposed === null || full === null) return () => NOTHING
  const sight = new Sight(exposed, full)
  return (table) => {
    const said = published.get(tableKey(table.schema, table.table))
    const here = said === undefined ? null : sight.of(table)
    return said === undefined || here === null ? NOTHING : tableOf(shownDocumentation(said, here), publishedAt)
  }
}

const NOTHING: DocumentedTable = { documentation: null, description: null, descriptionOf: () => null }

function tableOf({ columns, ...texts }: ShownDocumentation, publishedAt: string): DocumentedTable {
  const nothing = texts.summary === null && texts.examples === null && texts.statements.length === 0
  return {
    documentation: nothing ? null : { ...texts, publishedAt },
    description: texts.summary,
    descriptionOf: (column) => columns.get(column) ?? null,
  }
}
