// All tables of the store as Kysely types. On both dialects, times are ISO 8601 strings in UTC, booleans are 0 or 1,
// and structured values are JSON strings. The tables of better-auth use the types of better-auth instead.
import type { Generated } from 'kysely'
import type {
  AccountId,
  ApiKeyId,
  AuditId,
  DatasourceId,
  DeliveryId,
  ExposureRequestId,
  GrantId,
  InvitationId,
  JobId,
  PasskeyId,
  SessionId,
  TeamId,
  WebhookId,
} from '../ids.ts'
import type { Role } from '../contract/schemas.ts'
import type { KnowledgeTables, KnowledgeVersions } from './profile-and-documentation-tables.ts'

export interface Tables extends KnowledgeTables {
  accounts: AccountTable
  sessions: SessionTable
  sign_in_methods: SignInMethodTable
  verifications: VerificationTable
  signing_keys: SigningKeyTable
  second_factors: SecondFactorTable
  passkeys: PasskeyTable
  used_codes: UsedCodeTable
  counters: CounterTable
  api_keys: ApiKeyTable
  connector_grants: ConnectorGrantTable
  oauth_clients: OauthClientTable
  oauth_consents: OauthConsentTable
  oauth_refresh_tokens: OauthRefreshTokenTable
  teams: TeamTable
  memberships: MembershipTable
  invitations: InvitationTable
  datasources: DatasourceTable
  datasource_secrets: DatasourceSecretTable
  test_reports: TestReportTable
  catalogs: CatalogTableRow
  catalog_counts: CatalogCountsTable
  reintrospections: ReintrospectionTable
  exposures: ExposureTable
  access_entries: AccessEntryTable
  audit: AuditTable
  audit_chains: AuditChainTable
  audit_gaps: AuditGapTable
  audit_packs: AuditPackTable
  usage_days: UsageDayTable
  usage_slots: UsageSlotTable
  exposure_requests: ExposureRequestTable
  webhooks: WebhookTable
  webhook_conditions: WebhookConditionTable
  webhook_deliveries: WebhookDeliveryTable
  jobs: JobTable
  marks: MarkTable
}

/** The table `user` of better-auth. */
export interface AccountTable {
  id: AccountId
  name: string
  email: string
  emailVerified: number | boolean
  image: string | null
  createdAt: string | Date
  updatedAt: string | Date
  /** Null for accounts older than second factors. */
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

/** The table `account` of better-auth: one way to sign in. */
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
  /**
   * The name of the account at the provider: a login or an e-mail address. Null for a password. Only our code uses this
   * column.
   */
  label: Generated<string | null>
}

export interface PasskeyTable {
  id: PasskeyId
  account_id: AccountId
  name: string
  /** Base64url, as the authenticator sends it. */
  credential_id: string
  /** COSE, base64url. */
  public_key: string
  /** The signature counter of the authenticator. Always 0 for many authenticators. */
  counter: number
  /** JSON list: how a browser reaches the authenticator. */
  transports: string
  /** 1 if the passkey is also on the person's other devices. */
  synced: number
  created_at: string
  last_used_at: string | null
}

interface VerificationTable {
  id: string
  identifier: string
  value: string
  expiresAt: string | Date
  createdAt: string | Date
  updatedAt: string | Date
}

/** The table `jwks` of better-auth. */
interface SigningKeyTable {
  id: string
  publicKey: string
  /** better-auth encrypts it with a key derived from the root key. */
  privateKey: string
  createdAt: string | Date
  expiresAt: string | Date | null
  alg: string | null
  crv: string | null
}

/** The table `twoFactor` of better-auth. It encrypts the secret and the codes with a key derived from the root key. */
interface SecondFactorTable {
  id: string
  userId: AccountId
  secret: string
  backupCodes: string
  verified: number | boolean | null
  failedVerificationCount: number | null
  lockedUntil: string | Date | null
}

/** A used code of a second factor or challenge of a passkey. The row is needed until that code or challenge expires. */
interface UsedCodeTable {
  account_id: AccountId
  /** SHA-256, hex. */
  code_hash: string
  until: string
}

/** A count within a time window. rate-limiter-flexible also writes rows, and requires these columns in this order. */
interface CounterTable {
  /** `attempt:`, a kind and the SHA-256 of caller and action; or `queries:` with team and window. */
  key: string
  points: number
  /** Milliseconds since 1970. */
  expire: number
}

export interface ApiKeyTable {
  id: ApiKeyId
  account_id: AccountId
  name: string
  /** The SHA-256 of the whole key, hex. The key itself is never stored. */
  hash: string
  /** The last characters of the key, so that people can recognize it. */
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
  /** JSON list of teams in which the key no longer works: a manager ended it there, or the account left the team. */
  ended_team_ids: string
  /** When the owner was warned that the key will expire. Null before the warning. */
  warned_at: string | null
  /** The key that this key replaced in a rotation. It may be deleted. */
  replaces: ApiKeyId | null
  replaced_by: ApiKeyId | null
  last_client: string | null
}

/** A registered OAuth client. The library reads the row. */
interface OauthClientTable {
  id: string
  clientId: string
  name: string
  /** JSON list. */
  redirectUris: string
  /** JSON list. */
  grantTypes: string
  tokenEndpointAuthMethod: string
  createdAt: string | Date
}

/** Written by the library. Lists only the columns that our code uses. */
interface OauthConsentTable {
  id: string
  /** The grant. */
  referenceId: string | null
}

/** Written by the library. Lists only the columns that our code uses. */
interface OauthRefreshTokenTable {
  id: string
  /** SHA-256, base64url. */
  token: string
  clientId: string
  userId: AccountId
  /** The grant. */
  referenceId: string | null
  /** The SHA-256 (base64url) of the authorization code from which the first of these tokens was issued. */
  authorizationCodeId: string | null
  revoked: string | Date | null
  expiresAt: string | Date
  /** Until this time, a request with a used token gets the same answer again. */
  rotationReplayExpiresAt: string | Date | null
  /** Encrypted by the library. */
  rotationReplayResponse: string | null
}

/** The access that a person granted to an agent on the consent page. */
export interface ConnectorGrantTable {
  id: GrantId
  account_id: AccountId
  /** The id of the OAuth client, or the URL of the client's metadata document. */
  client_id: string
  /** The name that the client gave itself when the grant was made. */
  client_name: string
  /** The host that is responsible for the client. Unlike the name, a client cannot choose another owner's host. */
  client_host: string
  /** JSON lists, as in api_keys. */
  scopes: string
  team_ids: string | null
  datasource_ids: string | null
  ended_team_ids: string
  created_at: string
  expires_at: string | null
  last_used_at: string | null
  revoked_at: string | null
}

export interface TeamTable {
  id: TeamId
  name: string
  slug: string
  /** JSON object with the settings that differ from the defaults. */
  settings: string
  created_at: string
}

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
  /** Null if the account was deleted, or if the row is older than this column. */
  invited_by: AccountId | null
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
  /** JSON object without secrets. */
  config: string
  access_mode: 'ROLE_BASED' | 'EXPLICIT'
  min_role: Role
  created_at: string
  updated_at: string
  last_tested_at: string | null
  last_error: string | null
  /** The grade in the last test of the current connection. Null before the first test. */
  last_grade: Generated<'PASS' | 'WARN' | 'FAIL' | null>
  /** Increases with every change of the connection. Pools and caches for older versions are closed. */
  connection_version: number
  /** Increases with every introspection. 0 before the first introspection. */
  catalog_version: number
  /** Increases when the exposure is saved. 0 before the first exposure. */
  exposure_version: number
  /** After this many hours, the database is introspected again. 0 means never. */
  reintrospect_hours: Generated<number>
}

/** The last report of a connection test. */
interface TestReportTable {
  datasource_id: DatasourceId
  tested_at: string
  /** JSON. */
  report: string
}

interface DatasourceSecretTable {
  datasource_id: DatasourceId
  field: string
  /** Encrypted (secrets.ts). */
  sealed: string
}

interface CatalogTableRow {
  datasource_id: DatasourceId
  version: number
  captured_at: string
  /** JSON of a Catalog. */
  catalog: string
  /** The connection_version when the catalog was read. Null if the row is older than this column. */
  connection_version: number | null
}

/** The counts belong to these versions. If the datasource has other versions, the row is outdated. */
interface CatalogCountsTable {
  datasource_id: DatasourceId
  catalog_version: number
  exposure_version: number
  captured_at: string
  tables: number
  exposed_tables: number
  /** Null if there was no save of the exposure, or no catalog then. */
  drift: number | null
}

/** A scheduled introspection that is running or has failed. */
interface ReintrospectionTable {
  datasource_id: DatasourceId
  /** Until this time, only the process that set the time may run the introspection. */
  claimed_until: string | null
  failures: number
  retry_at: string | null
  /** The `last_error` that the last failure set on the datasource, if any. */
  error: string | null
}

interface ExposureTable {
  datasource_id: DatasourceId
  version: number
  /** JSON list of {schema, table, columns: [name…]}. */
  tables: string
  author_id: AccountId
  created_at: string
  /** The catalog for which the exposure was saved. Null if unknown, or if there was no catalog. */
  catalog_version: number | null
  note: Generated<string | null>
  /** `added` and `removed` count columns, since the previous version. The counts are null if they are unknown. */
  table_count: Generated<number | null>
  column_count: Generated<number | null>
  added: Generated<number | null>
  removed: Generated<number | null>
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
  key_id: ApiKeyId | GrantId | null
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
  /** How many calls the row counts (see Audit.folded()). */
  times: number
  client: string | null
  /** 1 if literals were removed from `query` and `printed`, or the texts were left out. */
  redacted: Generated<number>
  /** JSON (audit/row-detail.ts). Null if there is no detail, or if the row is older than this column. */
  detail: string | null
  /** The chain of the process that wrote the row. Null if the row is older than the chains. */
  chain: string | null
  /** The position in the chain, from 1. Null if the row is not linked. */
  seq: number | null
  /**
   * A hash of the row and of the previous row's link. If the row is not linked, a hash of the row alone
   * (audit/chain/seal.ts).
   */
  link: string | null
}

export interface AuditChainTable {
  chain: string
  /** The number of the chain, from 1, without gaps between numbers. */
  number: number
  opened_at: string
  /** The number of the last linked row. */
  head_seq: number
  head_link: string
  /** Increases with every write. If the answer to a commit was lost, this shows whether the rows were written. */
  batch: number
  /** Signs all other columns. */
  signature: string
}

/** A signed record of rows that were removed from a chain because they were too old. */
export interface AuditGapTable {
  chain: string
  first_seq: number
  last_seq: number
  /** The link of the last removed row, to which the next row is linked. */
  last_link: string
  /** The newest time of the removed rows. */
  until: string
  signature: string
}

/** Consecutive rows of a team that were written together (audit/packs.ts). */
export interface AuditPackTable {
  first_id: AuditId
  last_id: AuditId
  team_id: TeamId
  first_at: string
  last_at: string
  chain: string
  first_seq: number
  last_seq: number
  /** The link of the last row, to which the next row is linked. */
  last_link: string
  /** The first characters of each row's link. */
  marks: string
  /** One row per line, compressed with raw deflate. The links are hashes of these lines. */
  packed: Uint8Array
}

/** How many queries a caller made to a datasource on one day (UTC). A column without a value is ''. */
export interface UsageDayTable {
  team_id: TeamId
  date: string
  datasource_id: DatasourceId | ''
  account_id: AccountId | ''
  key_id: ApiKeyId | GrantId | ''
  /** The chain of the process that counted. A total needs the counts of all chains. */
  chain: string
  queries: number
  denied: number
  failed: number
  row_count: number
}

/** How many queries a caller and client made to a datasource in one hour (UTC). A column without a value is ''. */
export interface UsageSlotTable {
  team_id: TeamId
  /** YYYY-MM-DDTHH. */
  slot: string
  datasource_id: DatasourceId | ''
  account_id: AccountId | ''
  key_id: UsageDayTable['key_id']
  client: string
  chain: string
  queries: number
  denied: number
  failed: number
  row_count: number
  bytes: number
  duration_ms: number
  estimate: number
  /** JSON list of pairs: a bucket of durations (audit/duration-histogram.ts), and its count. */
  times: string
}

/** A member's request to expose a table or column for which a query was refused. */
export interface ExposureRequestTable {
  id: ExposureRequestId
  team_id: TeamId
  datasource_id: DatasourceId
  account_id: AccountId
  audit_id: AuditId
  why: string
  /** JSON {kind, name}. */
  blocked: string
  created_at: string
  closed_at: string | null
  closed_by: AccountId | null
  resolution: 'EXPOSED' | 'DECLINED' | null
  note: string | null
}

export interface WebhookTable {
  id: WebhookId
  team_id: TeamId
  /** The account that created the webhook or changed it last. */
  account_id: AccountId
  name: string
  /** The host of the URL, with the port. */
  host: string
  format: 'JSON' | 'SLACK'
  /** JSON list. */
  events: string
  refusals_count: number
  refusals_minutes: number
  enabled: number
  sealed_url: string
  sealed_secret: string
  /** How many events were dropped because the queue was full. */
  dropped: number
  created_at: string
}

/** A condition that was true at the last check. While the row exists, the condition is not reported again. */
interface WebhookConditionTable {
  webhook_id: WebhookId
  key: string
}

export interface WebhookDeliveryTable {
  id: DeliveryId
  webhook_id: WebhookId
  event: 'refusals' | 'drift' | 'keyExpiring' | 'datasourceError'
  body: string
  created_at: string
  state: 'WAITING' | 'DELIVERED' | 'FAILED'
  attempts: number
  next_at: string
  /** Until this time, only the process that set the time may send the event. */
  claimed_until: string | null
  last_at: string | null
  status: number | null
  error: string | null
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
  /** JSON. Null if the job is not resumable or has ended. */
  input: string | null
  /** Null if the service started the job, or if the row is older than this column. */
  started_by: Generated<AccountId | null>
  step: Generated<string | null>
}

/** A value that the store keeps about itself, such as the id of its root key. */
interface MarkTable {
  name: string
  value: string
}
