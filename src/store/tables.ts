// Vitrine's tables as Kysely types, one interface per table. On both dialects, times are ISO 8601 strings in UTC,
// booleans are 0 or 1, and structured values are JSON strings. better-auth writes the sign-in tables in its own types.
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

/** better-auth's user. Dates have the type that its adapter writes for the dialect. */
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

/** better-auth's account: one sign-in method. */
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
   * The name of the account at the provider: a login or an e-mail address. Null for a password. The library does not
   * use it.
   */
  label: Generated<string | null>
}

export interface PasskeyTable {
  id: PasskeyId
  account_id: AccountId
  /** Chosen by the person. */
  name: string
  /** Base64url, as the authenticator sends it. */
  credential_id: string
  /** COSE, base64url. */
  public_key: string
  /** The authenticator's signature counter. Many authenticators always send 0. */
  counter: number
  /** JSON list: how a browser reaches the authenticator. */
  transports: string
  /** 1 if the passkey is copied to the person's other devices. */
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

/** better-auth's jwks. */
interface SigningKeyTable {
  id: string
  publicKey: string
  /** Encrypted by better-auth with a key derived from the root key. */
  privateKey: string
  createdAt: string | Date
  expiresAt: string | Date | null
  alg: string | null
  crv: string | null
}

/** better-auth's twoFactor. Secret and codes are encrypted by better-auth with a key derived from the root key. */
interface SecondFactorTable {
  id: string
  userId: AccountId
  secret: string
  backupCodes: string
  verified: number | boolean | null
  failedVerificationCount: number | null
  lockedUntil: string | Date | null
}

/** A used code of a second factor, or a used passkey challenge. It is stored until the code or challenge expires. */
interface UsedCodeTable {
  account_id: AccountId
  /** SHA-256, hex. */
  code_hash: string
  until: string
}

/** A count within a time window. rate-limiter-flexible also writes rows, and needs these columns in this order. */
interface CounterTable {
  /** `attempt:` with the SHA-256 of caller and action, or `queries:` with team and window. */
  key: string
  points: number
  /** When the window ends, milliseconds since 1970. */
  expire: number
}

export interface ApiKeyTable {
  id: ApiKeyId
  account_id: AccountId
  name: string
  /** SHA-256 of the whole key, hex. The key itself is never stored. */
  hash: string
  /** The last characters of the key, which help people to tell keys apart. */
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
  /**
   * JSON list of teams that the key no longer reaches: a manager removed the key there, or the account left the team.
   */
  ended_team_ids: string
  /** When the owner was warned of the expiry. The first process that warns sets this time. */
  warned_at: string | null
  /** The key that a rotation replaced by this key, or null. The replaced key may have been deleted. */
  replaces: ApiKeyId | null
  replaced_by: ApiKeyId | null
  /** The name that the client of the last use gave itself. */
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

/** The columns that our code uses. The library writes the rows. */
interface OauthConsentTable {
  id: string
  /** The grant. */
  referenceId: string | null
}

/** The columns that our code uses. The library writes the rows. */
interface OauthRefreshTokenTable {
  id: string
  /** SHA-256, base64url. */
  token: string
  clientId: string
  /** The grant. */
  referenceId: string | null
  /** SHA-256, base64url, of the authorization code for which the first token of the family was issued. */
  authorizationCodeId: string | null
  revoked: string | Date | null
  expiresAt: string | Date
  /** Until this time, a used token gets the same answer again. */
  rotationReplayExpiresAt: string | Date | null
  /** Encrypted by the library. */
  rotationReplayResponse: string | null
}

/** The access that a person granted to an agent on the consent page. */
export interface ConnectorGrantTable {
  id: GrantId
  account_id: AccountId
  /** The OAuth client: an id that we made, or the URL of its metadata document. */
  client_id: string
  /** The name that the client gave itself when the grant was made. */
  client_name: string
  /** The host that is responsible for the client. A stranger can choose any name, but no host of somebody else. */
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
  /** JSON object of the settings that differ from the defaults. */
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
  /** Null in rows older than this column, and if the account is gone. */
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
  /** The grade of the last test of this connection. Null if the connection was not tested. */
  last_grade: Generated<'PASS' | 'WARN' | 'FAIL' | null>
  /** Increases with every change of the connection. Pools and caches of older versions are closed. */
  connection_version: number
  /** Increases with every introspection. 0 before the first introspection. */
  catalog_version: number
  /** Increases with every PUT of the exposure. 0 before the first PUT. */
  exposure_version: number
  /** The database is introspected again when the catalog is this many hours old. 0 means never. */
  reintrospect_hours: Generated<number>
}

/** The last test report of a datasource's connection. */
interface TestReportTable {
  datasource_id: DatasourceId
  tested_at: string
  /** JSON. */
  report: string
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
  /** The datasource's version when the catalog was read. Null for catalogs older than this column. */
  connection_version: number | null
}

/** A scheduled reintrospection that is running or has failed. */
interface ReintrospectionTable {
  datasource_id: DatasourceId
  /**
   * Until this time, only the process that made this claim runs the reintrospection. That process may extend the claim.
   */
  claimed_until: string | null
  /** Consecutive failures. */
  failures: number
  /** The earliest next attempt. */
  retry_at: string | null
  /** The lastError text that the last failure set, if any. */
  error: string | null
}

interface ExposureTable {
  datasource_id: DatasourceId
  version: number
  /** JSON list of {schema, table, columns: [name…]}. */
  tables: string
  author_id: AccountId
  created_at: string
  /**
   * The version of the catalog that the exposure was saved with. That catalog is stored while the exposure is the
   * newest. Null if there was no catalog, or its version is unknown.
   */
  catalog_version: number | null
  /** The author's own reason for the change. */
  note: Generated<string | null>
  /**
   * The next four columns count the tables and columns of the exposure, and the columns added and removed since the
   * version before. Null if unknown.
   */
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
  /** The API key, or the grant of an agent. */
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
  /** The number of calls in the row, for example of all 429s of a key in a minute (Audit.folded()). */
  times: number
  /** The name that the client gives itself. */
  client: string | null
  /** 1 if literals were removed from `query` and `printed`, or the texts were left out. */
  redacted: Generated<number>
  /** JSON (audit/row-detail.ts). Null if there is no detail, and in rows older than this column. */
  detail: string | null
  /** The chain of the process that wrote the row. Null only for rows older than the chains. */
  chain: string | null
  /** The position in the chain, from 1. Null until the row is linked. */
  seq: number | null
  /**
   * The seal that ties the row to the row before it. Until the row is linked, the seal covers only the row
   * (audit/chain/seal.ts).
   */
  link: string | null
}

/** One chain per process that wrote to the audit. */
export interface AuditChainTable {
  chain: string
  /** The number of the chain. Numbers start at 1 and have no gaps, across all processes of the store. */
  number: number
  opened_at: string
  /** The number of the last linked row. */
  head_seq: number
  head_link: string
  /** Increases with every write. Shows whether a write with a lost answer succeeded. */
  batch: number
  /** Signs all other columns. */
  signature: string
}

/** A signed record that replaces rows that retention removed from a chain. */
export interface AuditGapTable {
  chain: string
  first_seq: number
  last_seq: number
  /** The link of the last removed row. The next row is linked to it. */
  last_link: string
  /** The newest time of the removed rows. */
  until: string
  signature: string
}

/** Consecutive rows of a team, written together (audit/packs.ts). */
export interface AuditPackTable {
  first_id: AuditId
  last_id: AuditId
  team_id: TeamId
  /** The oldest and newest time of the rows. */
  first_at: string
  last_at: string
  chain: string
  first_seq: number
  last_seq: number
  /** The link of the last row. The next row is linked to it. */
  last_link: string
  /** The prefix of each row's link. */
  marks: string
  /** Compressed (raw deflate), one row per line, in the form that the seal covers. */
  packed: Uint8Array
}

/** Counts of queries of one day (UTC) by caller and datasource. A column that does not apply is ''. */
export interface UsageDayTable {
  team_id: TeamId
  date: string
  datasource_id: DatasourceId | ''
  account_id: AccountId | ''
  key_id: ApiKeyId | GrantId | ''
  /** The chain of the process that counted. Rows of several chains are summed. */
  chain: string
  queries: number
  denied: number
  failed: number
  row_count: number
}

/** Counts of queries of one hour (UTC) by caller, datasource and client. A column that does not apply is ''. */
export interface UsageSlotTable {
  team_id: TeamId
  /** YYYY-MM-DDTHH. */
  slot: string
  datasource_id: DatasourceId | ''
  account_id: AccountId | ''
  key_id: UsageDayTable['key_id']
  client: string
  /** The chain of the process that counted. Rows of several chains are summed. */
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

/** A member's request for a refused object. */
export interface ExposureRequestTable {
  id: ExposureRequestId
  team_id: TeamId
  datasource_id: DatasourceId
  account_id: AccountId
  audit_id: AuditId
  why: string
  /** JSON {kind, name}, as in the audit. */
  blocked: string
  created_at: string
  closed_at: string | null
  closed_by: AccountId | null
  resolution: 'EXPOSED' | 'DECLINED' | null
  note: string | null
}

/** A team's webhook. */
export interface WebhookTable {
  id: WebhookId
  team_id: TeamId
  /** The account that created or last changed the webhook. */
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
  /** The number of events that were dropped because the queue was full. */
  dropped: number
  created_at: string
}

/** A condition that was true at the last check. Only a condition without a row is reported. */
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
  /** Until this time, only the process that made this claim sends the event. */
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
  /** JSON input of a resumable job. Null if the job is not resumable or has ended. */
  input: string | null
  /** Null if the service started the job, and for jobs older than this column. */
  started_by: Generated<AccountId | null>
  /** The item that the job is processing, such as a table. */
  step: Generated<string | null>
}

/** A value that the store keeps about itself. */
interface MarkTable {
  name: string
  value: string
}
