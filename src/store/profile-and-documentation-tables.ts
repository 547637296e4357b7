// The tables of profiles and documentation.
import type { Generated } from 'kysely'
import type { AccountId, DatasourceId } from '../ids.ts'

export interface KnowledgeTables {
  profiles: ProfileTable
  documentation: DocumentationTable
  publications: PublicationTable
  publication_history: PublicationHistoryTable
}

/** Versions of a datasource's profile and documentation. */
export interface KnowledgeVersions {
  /** Increases when a profile is finished or changed. 0 before the first profile. */
  profile_version: Generated<number>
  /** The time the newest profile was finished. */
  profiled_at: Generated<string | null>
  /** Increases with every change of the documentation. 0 before the first change. */
  documentation_version: Generated<number>
  /** Increases with every publication. 0 before the first publication. */
  published_version: Generated<number>
  published_at: Generated<string | null>
}

/** The profile of one table's exposed columns, as far as privacy rules allow. */
interface ProfileTable {
  datasource_id: DatasourceId
  schema: string
  table: string
  /** The job that wrote the profile. A resumed job skips finished tables. */
  run: string
  captured_at: string
  /** JSON. */
  profile: string
  /** Increases with every change outside a job. */
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

/** The newest publication of a datasource. Older ones are deleted. */
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

/** The changes of each publication of a datasource. The table contains none of the published texts. */
interface PublicationHistoryTable {
  datasource_id: DatasourceId
  version: number
  author_id: AccountId
  published_at: string
  /** The number of tables with a published text. */
  tables: number
  /** The number of published texts. */
  texts: number
  /** The next three columns compare the publication with the previous one. */
  added: number
  changed: number
  removed: number
}
