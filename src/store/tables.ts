// Vitrine's own tables as Kysely sees them: one interface a table. Times are ISO 8601 texts in UTC, booleans 0 or 1,
// structured values JSON texts, on SQLite and PostgreSQL alike; the tables of sign-in are written by better-auth.
import type { Generated } from 'kysely'
import type { AccountId, ApiKeyId, AuditId, DatasourceId, InvitationId, JobId, SessionId, TeamId } from '../ids.ts'
import type { KnowledgeTables, KnowledgeVersions } from './knowledge-tables.ts'

export interface Tables extends KnowledgeTables {
  accounts: AccountTable
  sessions: SessionTable
  sign_in_methods: SignInMethodTable
  verifications: VerificationTable
  signing_keys: SigningKeyTable
  second_factors: SecondFactorTable
  used_codes: UsedCodeTable
  attempts: AttemptTable
  api_keys: ApiKeyTable
  teams: TeamTable
  memberships: MembershipTable
  invitations: InvitationTable
  datasources: DatasourceTable
  datasource_secrets: DatasourceSecretTable
  catalogs: CatalogTableRow
  reintrospections: ReintrospectionTable
  exposures: ExposureTable
  access_entries: AccessEntryTable
  audit: AuditTable
  audit_chains: AuditChainTable
  audit_gaps: AuditGapTable
  audit_packs: AuditPackTable
  usage_days: UsageDayTable
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
  /** null: of an account from before there was a second factor. */
  twoFactorEnabled: number | boolean | null
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

/** better-auth's twoFactor. Secret and codes are encrypted by it, with a key derived from the root key. */
interface SecondFactorTable {
  id: string
  userId: AccountId
  secret: string
  backupCodes: string
  verified: number | boolean | null
  failedVerificationCount: number | null
  lockedUntil: string | Date | null
}

/** A code of a second factor that signed somebody in, for as long as it could be used again. */
interface UsedCodeTable {
  account_id: AccountId
  /** SHA-256, hex. */
  code_hash: string
  until: string
}

/** How often something was tried within a window of time. */
interface AttemptTable {
  /** SHA-256, hex, of who tried what. */
  key_hash: string
  count: number
  /** Milliseconds since 1970. */
  ends_at: number
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
  /** JSON list of teams that this key no longer reaches: their managers ended it, or its account left them. */
  ended_team_ids: string
  /** When its owner was told that it ends soon, by whichever process was first. */
  warned_at: string | null
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
  /** How old a catalog may get before the database is looked at again; 0: as old as it likes. */
  reintrospect_hours: Generated<number>
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
  /** The datasource's when it was captured; null: before that was kept. */
  connection_version: number | null
}

/** What is under way, or went wrong, of looking at a database again by itself; no row: neither. */
interface ReintrospectionTable {
  datasource_id: DatasourceId
  /** A process works at it until then, or says so anew. */
  claimed_until: string | null
  /** In a row. */
  failures: number
  /** Not tried again before. */
  retry_at: string | null
  /** The sentence that the last failure left as the datasource's lastError, if any. */
  error: string | null
}

interface ExposureTable {
  datasource_id: DatasourceId
  version: number
  /** JSON list of {schema, table, columns: [name…]}. */
  tables: string
  author_id: AccountId
  created_at: string
  /** The catalog it was saved at, which is kept for as long as it stands; null: none, or unknown. */
  catalog_version: number | null
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
  /** What the calling program says it is. */
  client: string | null
  /** 1 where the literals of `query` and `printed` were taken out, or the texts are left out for that. */
  redacted: Generated<number>
  /** JSON (audit/detail.ts); null where there is nothing to say, and in rows from before there was such a column. */
  detail: string | null
  /** The chain of the process that wrote it; null only for rows from before there were chains. */
  chain: string | null
  /** Its place in the chain, from 1; null until it is linked. */
  seq: number | null
  /** Binds it to the row before; until it is linked, to itself alone (audit/seal.ts). */
  link: string | null
}

/** One a process that wrote to the audit. */
export interface AuditChainTable {
  chain: string
  /** From 1, over all processes of the store, without a gap. */
  number: number
  opened_at: string
  /** The last row that was linked. */
  head_seq: number
  head_link: string
  /** Rises with every write: tells whether one whose answer was lost was done. */
  batch: number
  /** Of all of it. */
  signature: string
}

/** Rows of a chain that were removed for their age: what stands in their place. */
export interface AuditGapTable {
  chain: string
  first_seq: number
  last_seq: number
  /** Of the last of them: the next row is bound to it. */
  last_link: string
  /** The time of the newest of them. */
  until: string
  signature: string
}

/** Rows of a team that follow each other in a chain, written in one go (audit/packs.ts). */
export interface AuditPackTable {
  first_id: AuditId
  last_id: AuditId
  team_id: TeamId
  /** The oldest and the newest time of its rows. */
  first_at: string
  last_at: string
  chain: string
  first_seq: number
  last_seq: number
  /** Of its last row: the next one is bound to it. */
  last_link: string
  /** How the link of each row begins. */
  marks: string
  /** A row a line, as its seal reads it; deflated. */
  packed: Uint8Array
}

/** Queries of a day (UTC), by whom and of what; '' where that does not apply. */
export interface UsageDayTable {
  team_id: TeamId
  date: string
  datasource_id: DatasourceId | ''
  account_id: AccountId | ''
  key_id: ApiKeyId | ''
  /** Of the process that counts; several add up. */
  chain: string
  queries: number
  denied: number
  failed: number
  row_count: number
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
  /** JSON of what it was started with, where it goes on after a restart; null: it does not, or has ended. */
  input: string | null
}

/** What the store remembers of itself. */
interface MarkTable {
  name: string
  value: string
}
