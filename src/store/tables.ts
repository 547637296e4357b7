// Vitrine's own tables as Kysely sees them: one interface a table. Times are ISO 8601 texts in UTC, booleans 0 or 1,
// structured values JSON texts, on SQLite and PostgreSQL alike; the tables of sign-in are written by better-auth.
import type { AccountId, ApiKeyId, AuditId, DatasourceId, InvitationId, JobId, SessionId, TeamId } from '../ids.ts'
import type { KnowledgeTables, KnowledgeVersions } from './knowledge-tables.ts'

export interface Tables extends KnowledgeTables {
  accounts: AccountTable
  sessions: SessionTable
  sign_in_methods: SignInMethodTable
  verifications: VerificationTable
  signing_keys: SigningKeyTable
  api_keys: ApiKeyTable
  teams: TeamTable
  memberships: MembershipTable
  invitations: InvitationTable
  datasources: DatasourceTable
  datasource_secrets: DatasourceSecretTable
  catalogs: CatalogTableRow
  exposures: ExposureTable
  access_entries: AccessEntryTable
  audit: AuditTable
  jobs: JobTable
  marks: MarkTable
}

/** better-auth's user. Dates are what its adapter writes for the dialect. */
export interface AccountTable {
  id: AccountId
  name: string
  email: string
  emailVerified: number | boolean
  image: string | null
  createdAt: string | Date
  updatedAt: string | Date
}

interface SessionTable {
  id: SessionId
  userId: AccountId
  token: string
  expiresAt: string | Date
  ipAddress: string | null
  userAgent: string | null
  createdAt: string | Date
  updatedAt: string | Date
}

/** better-auth's account: one way to sign in. */
interface SignInMethodTable {
  id: string
  userId: AccountId
  accountId: string
  providerId: string
  accessToken: string | null
  refreshToken: string | null
  idToken: string | null
  accessTokenExpiresAt: string | Date | null
  refreshTokenExpiresAt: string | Date | null
  scope: string | null
  password: string | null
  createdAt: string | Date
  updatedAt: string | Date
}

interface VerificationTable {
  id: string
  identifier: string
  value: string
  expiresAt: string | Date
  createdAt: string | Date
  updatedAt: string | Date
}

/** better-auth's jwks. */
interface SigningKeyTable {
  id: string
  publicKey: string
  /** Encrypted by better-auth, with a key derived from the root key. */
  privateKey: string
  createdAt: string | Date
  expiresAt: string | Date | null
  alg: string | null
  crv: string | null
}

export interface ApiKeyTable {
  id: ApiKeyId
  account_id: AccountId
  name: string
  /** SHA-256 of the whole key, hex. The key itself is never kept. */
  hash: string
  /** The last letters, to tell keys apart. */
  hint: string
  /** JSON list. */
  scopes: string
  /** JSON list, or null for all. */
  team_ids: string | null
  datasource_ids: string | null
  created_at: string
  last_used_at: string | null
  expires_at: string | null
  revoked_at: string | null
  /** JSON list of teams whose managers ended this key for them. */
  ended_team_ids: string
}

export interface TeamTable {
  id: TeamId
  name: string
  slug: string
  /** JSON object of the settings that differ from the defaults. */
  settings: string
  created_at: string
}

export type Role = 'OWNER' | 'ADMIN' | 'MEMBER'

export interface MembershipTable {
  team_id: TeamId
  account_id: AccountId
  role: Role
  status: 'INVITED' | 'ACTIVE'
  created_at: string
}

export interface InvitationTable {
  id: InvitationId
  team_id: TeamId
  email: string
  role: Role
  /** SHA-256 of the token, hex. */
  token_hash: string
  created_at: string
  expires_at: string
  used_at: string | null
}

export interface DatasourceTable extends KnowledgeVersions {
  id: DatasourceId
  team_id: TeamId
  name: string
  type: 'POSTGRES' | 'MONGODB' | 'BIGQUERY'
  status: 'PENDING' | 'CONNECTED' | 'ERROR' | 'DISABLED'
  connection_mode: string
  host: string | null
  port: number | null
  database: string
  username: string | null
  ssl_mode: string | null
  /** JSON object, nothing secret. */
  config: string
  access_mode: 'ROLE_BASED' | 'EXPLICIT'
  min_role: Role
  created_at: string
  updated_at: string
  last_tested_at: string | null
  last_error: string | null
  /** Rises with every change of connection: pools and caches of an older one are ended. */
  connection_version: number
  /** Rises with every introspection; 0 before the first. */
  catalog_version: number
  /** Rises with every PUT of the exposure; 0 before the first. */
  exposure_version: number
}

interface DatasourceSecretTable {
  datasource_id: DatasourceId
  field: string
  /** Sealed envelope (secrets.ts). */
  sealed: string
}

interface CatalogTableRow {
  datasource_id: DatasourceId
  version: number
  captured_at: string
  /** JSON of a Catalog. */
  catalog: string
}

interface ExposureTable {
  datasource_id: DatasourceId
  version: number
  /** JSON list of {schema, table, columns: [name…]}. */
  tables: string
  author_id: AccountId
  created_at: string
}

interface AccessEntryTable {
  datasource_id: DatasourceId
  account_id: AccountId
}

export interface AuditTable {
  id: AuditId
  at: string
  team_id: TeamId | null
  datasource_id: DatasourceId | null
  account_id: AccountId | null
  key_id: ApiKeyId | null
  via: 'API_KEY' | 'SESSION' | 'CONNECTOR'
  action: string
  outcome: 'ANSWERED' | 'DENIED' | 'FAILED'
  code: string | null
  /** JSON {kind, name}. */
  blocked: string | null
  query: string | null
  printed: string | null
  row_count: number | null
  bytes: number | null
  duration_ms: number | null
  /** How often, for rows that stand for several calls (a 429 is one row a key and minute). */
  times: number
}

export interface JobTable {
  id: JobId
  datasource_id: DatasourceId
  kind: string
  state: 'QUEUED' | 'RUNNING' | 'DONE' | 'FAILED' | 'CANCELLED'
  done: number
  total: number
  /** JSON, or null. */
  result: string | null
  error: string | null
  created_at: string
  updated_at: string
}

/** What the store remembers of itself. */
interface MarkTable {
  name: string
  value: string
}
