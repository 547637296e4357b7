import type { Generated } from 'kysely'
import type { AccountId, DatasourceId } from '../ids.ts'

export interface KnowledgeTables {
  profiles: ProfileTable
  documentation: DocumentationTable
  publications: PublicationTable
  publication_history: PublicationHistoryTable
}

/** How often the profile and documentation of a datasource have changed. Caches compare these versions. */
export interface KnowledgeVersions {
  /** Increases when a profile is finished or changed. 0 before the first profile. */
  profile_version: Generated<number>
  profiled_at: Generated<string | null>
  /** Increases with every change of the documentation. 0 before the first change. */
  documentation_version: Generated<number>
  /** Increases with every publication. 0 before the first publication. */
  published_version: Generated<number>
  published_at: Generated<string | null>
}

/** The profile of a table: statistics of the exposed columns that the privacy rules allow. */
interface ProfileTable {
  datasource_id: DatasourceId
  schema: string
  table: string
  /** The job that wrote the profile. If the job is resumed, it skips the tables that it has profiled. */
  run: string
  captured_at: string
  /** JSON. */
  profile: string
  /** Increases with every change, except by profile jobs. */
  revision: Generated<number>
}

interface DocumentationTable {
  datasource_id: DatasourceId
  schema: string
  table: string
  /** JSON. */
  draft: string
  updated_at: string
  /** Null if no person has edited the generated text. */
  author_id: AccountId | null
}

/** Only the newest publication of a datasource is stored. */
interface PublicationTable {
  datasource_id: DatasourceId
  version: number
  /** JSON. */
  tables: string
  author_id: AccountId
  published_at: string
  /** Increases when a text is removed from the publication. */
  revision: Generated<number>
}

/** The history of a datasource's publications, without the published texts. */
interface PublicationHistoryTable {
  datasource_id: DatasourceId
  version: number
  author_id: AccountId
  published_at: string
  /** The number of tables with a published text. */
  tables: number
  texts: number
  /** How many texts were added, changed and removed since the previous publication. */
  added: number
  changed: number
  removed: number
}
