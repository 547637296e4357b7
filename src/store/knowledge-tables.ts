// The store's tables of what the description says beyond names, profiles and documentation, and of what it says in all.
import type { Generated } from 'kysely'
import type { AccountId, DatasourceId } from '../ids.ts'

export interface KnowledgeTables {
  profiles: ProfileTable
  documentation: DocumentationTable
  publications: PublicationTable
  descriptions: DescriptionTable
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

/** What was published, whole, one row a version. */
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

/** A description as it was written; gone with the versions it was written of, by a trigger on `datasources`. */
interface DescriptionTable {
  datasource_id: DatasourceId
  /** 'e': what is exposed; 'f': everything, as managers may see it. */
  part: string
  /** JSON list of what it was written of. */
  versions: string
  etag: string
  /** Unpacked. */
  bytes: number
  /** JSON in UTF-8, deflated. */
  packed: Uint8Array
}
