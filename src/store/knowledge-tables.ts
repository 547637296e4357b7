// The store's tables of what the description says beyond names, profiles and documentation.
import type { Generated } from 'kysely'
import type { AccountId, DatasourceId } from '../ids.ts'

export interface KnowledgeTables {
  profiles: ProfileTable
  documentation: DocumentationTable
  publications: PublicationTable
}

/** Of a datasource, beside what it is connected with. */
export interface KnowledgeVersions {
  /** Rises with every profile that is finished or changed; 0 before the first. */
  profile_version: Generated<number>
  /** When the newest profile was finished. */
  profiled_at: Generated<string | null>
  /** Rises with every change of the documentation; 0 before the first. */
  documentation_version: Generated<number>
  /** Rises with every publication; 0 before the first. */
  published_version: Generated<number>
  published_at: Generated<string | null>
}

/** What was seen of the values of one table's exposed columns, as far as it may be kept. */
interface ProfileTable {
  datasource_id: DatasourceId
  schema: string
  table: string
  /** The run that wrote it: one that goes on after a restart skips what it has done. */
  run: string
  captured_at: string
  /** JSON. */
  profile: string
  /** Rises with every change of it that is no run. */
  revision: Generated<number>
}

interface DocumentationTable {
  datasource_id: DatasourceId
  schema: string
  table: string
  /** JSON. */
  draft: string
  updated_at: string
  /** Null: nobody has touched what was generated. */
  author_id: AccountId | null
}

/** The newest publication of a datasource; older ones are deleted. */
interface PublicationTable {
  datasource_id: DatasourceId
  version: number
  /** JSON. */
  tables: string
  author_id: AccountId
  published_at: string
  /** Rises with every text that is taken out of it. */
  revision: Generated<number>
}
