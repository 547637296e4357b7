// The JSON of docs/contract.md and docs/session.md. A body with an unknown field is refused. Undeclared fields are
// removed from an answer.
import { listOf } from './long-lists.ts'
import { z } from 'zod'

const isText = (value: string) => value.isWellFormed() && !value.includes('\0')

/** A well-formed string without NUL, which every store and log can contain. */
export const text = (max: number) => z.string().max(max).refine(isText, 'must not contain NUL or lone surrogates')
export const name = text(100).refine((value) => value.trim() !== '', 'must not be empty')
const id = text(128).min(1)
export const identifier = text(1024).min(1)
/** The offset is required, because the service cannot know the caller's time zone. */
export const time = z.iso.datetime({ offset: true })
export const count = z.int().min(0)
const share = z.number().min(0)
/** A time in UTC from our own store, in ISO 8601. */
export const at = z.string().meta({ format: 'date-time' })

export const Scope = z.enum(['profile', 'data:schema', 'data:read'])
export const Role = z.enum(['OWNER', 'ADMIN', 'MEMBER'])
export type Role = z.infer<typeof Role>
const MembershipStatus = z.enum(['INVITED', 'ACTIVE'])
const DatasourceType = z.enum(['POSTGRES', 'MONGODB', 'BIGQUERY'])
const DatasourceStatus = z.enum(['PENDING', 'CONNECTED', 'ERROR', 'DISABLED'])
const ConnectionMode = z.enum(['DIRECT', 'URI', 'SSH_TUNNEL', 'SERVICE_ACCOUNT', 'APPLICATION_DEFAULT'])
const SslMode = z.enum(['disable', 'require', 'verify-ca', 'verify-full'])
const AccessMode = z.enum(['ROLE_BASED', 'EXPLICIT'])
const Grade = z.enum(['PASS', 'WARN', 'FAIL'])

// ── the five endpoints of docs/contract.md ───────────────────────────────────────────────────────────────────────

export const Account = z.object({
  id: z.string(),
  email: z.string(),
  name: z.string(),
  avatarUrl: z.string().nullable(),
  emailVerified: z.boolean(),
  createdAt: at,
})

export const Team = z.object({
  id: z.string(),
  name: z.string(),
  slug: z.string(),
  role: Role,
  status: MembershipStatus,
  /** Includes INVITED members. */
  memberCount: count,
  /** Only datasources that the caller may use. */
  dataSourceCount: count,
  createdAt: at,
})

export const Datasource = z.object({
  id: z.string(),
  teamId: z.string(),
  name: z.string(),
  type: DatasourceType,
  status: DatasourceStatus,
  createdAt: at,
  updatedAt: at,
  exposedTableCount: count,
  connectionMode: ConnectionMode,
  host: z.string().nullable(),
  port: count.nullable(),
  database: z.string(),
  username: z.string().nullable(),
  sslMode: SslMode.nullable(),
  config: z.record(z.string(), z.unknown()),
  accessMode: AccessMode,
  minRole: Role.nullable(),
  lastTestedAt: at.nullable(),
  lastError: z.string().nullable(),
  lastGrade: Grade.nullable().optional().meta({ description: 'The grade of the last test.' }),
  schemaCapturedAt: at.nullable().optional(),
  tableCount: count.nullable().optional(),
  // Only for signed-in managers.
  driftCount: count
    .nullable()
    .optional()
    .meta({ description: 'The number of tables and columns that changed since the exposure was saved.' }),
  exposureVersion: count.optional(),
})

const Reference = z.object({ schema: z.string(), table: z.string(), column: z.string() })

/** Unknown statistics are absent, but `signals` is always present. */
export const ColumnStats = z.object({
  nullFrac: share.optional(),
  distinctCount: count.optional(),
  /**
   * The most common value comes first. Values that the type allows but no profile has found come last, without a share.
   */
  values: z.array(z.object({ value: z.unknown(), share: share.optional() })).optional(),
  range: z.object({ min: z.unknown(), max: z.unknown() }).optional(),
  keys: z
    .array(z.object({ key: z.string(), share, types: z.array(z.string()) }))
    .optional()
    .meta({ description: 'Top-level keys of JSON objects, with the share of objects that have each key.' }),
  signals: z.array(z.string()),
})

export const ExposedColumn = z.object({
  name: z.string(),
  type: z.string(),
  nullable: z.boolean(),
  primaryKey: z.boolean(),
  references: Reference.nullable(),
  description: z.string().nullable(),
  stats: ColumnStats.nullable(),
})

const Documentation = z.object({
  summary: z.string().optional(),
  statements: z.array(z.string()),
  examples: z.string().optional(),
  publishedAt: at,
})

export const ExposedTable = z.object({
  schema: z.string(),
  table: z.string(),
  description: z.string().nullable(),
  documentation: Documentation.nullable(),
  estimatedRows: count.nullable(),
  columnsRestricted: z.boolean(),
  indexes: z
    .array(
      z.object({
        keys: z.array(z.object({ path: z.string(), direction: z.union([z.number(), z.string()]) })),
        unique: z.boolean(),
      }),
    )
    .optional(),
  columns: z.array(ExposedColumn),
})

export const Description = z.object({
  id: z.string(),
  name: z.string(),
  type: DatasourceType,
  vocabulary: z.object({ schema: z.string(), table: z.string(), queryLanguage: z.string() }),
  schemaCapturedAt: at.nullable(),
  profileCapturedAt: at.nullable(),
  tables: z.array(ExposedTable),
})

/** These schemas only document the bodies. Each driver parses its own body (Driver.read). */
const Scalar = z.union([z.null(), z.boolean(), z.number(), z.string()])
const Param = z.union([Scalar, z.strictObject({ type: z.string(), value: Scalar })])
const SqlBody = z.strictObject({
  /** 100,000 bytes for BIGQUERY, 65,536 for POSTGRES. */
  sql: text(100_000),
  limit: z.int().min(1).exactOptional(),
  /** By position, or by name (only BIGQUERY). */
  params: z.union([z.array(Param), z.record(z.string(), Param)]).exactOptional(),
})
const MongoBody = z.strictObject({
  collection: z.string(),
  filter: z.record(z.string(), z.unknown()).exactOptional(),
  pipeline: z.array(z.record(z.string(), z.unknown())).exactOptional(),
  limit: z.int().min(1).exactOptional(),
})
export const QueryBody = z.union([SqlBody, MongoBody])

export const QueryResult = z.object({
  columns: z.array(z.object({ name: z.string(), dataType: z.string() })),
  rows: z.array(z.array(z.unknown())),
  rowCount: count,
  truncated: z.boolean(),
  durationMs: z.number().min(0),
})

// ── refusals ─────────────────────────────────────────────────────────────────────────────────────────────────────

export const Blocked = z.object({
  kind: z.enum(['table', 'column', 'function', 'type', 'operator', 'statement', 'stage', 'cost', 'limit']),
  name: z.string(),
})

/** docs/errors.md lists the additional fields of each code. */
export const ErrorBody = z.looseObject({
  error: z.string().meta({ description: 'For people and agents. Safe to show unchanged.' }),
  code: z.string().meta({ description: 'For programs. Stable.' }),
})

// ── account and keys ─────────────────────────────────────────────────────────────────────────────────────────────

export const AccountChange = z.strictObject({ name: name.exactOptional() })
/** `confirm` is the account's e-mail address or the team's slug. Without it, the error is REAUTHENTICATION_REQUIRED. */
export const Confirmation = z.strictObject({ confirm: text(254).exactOptional() })

export const ApiKey = z.object({
  id: z.string(),
  name: z.string(),
  hint: z.string(),
  scopes: z.array(Scope),
  teamIds: z.array(z.string()).nullable(),
  datasourceIds: z.array(z.string()).nullable(),
  createdAt: at,
  lastUsedAt: at.nullable(),
  expiresAt: at.nullable(),
  expiring: z.boolean().meta({ description: 'True if the key expires within a week or has expired.' }),
  state: z
    .enum(['ACTIVE', 'GRACE', 'EXPIRED'])
    .meta({ description: 'GRACE: a rotation replaced the key, and its value works until expiresAt.' }),
  replaces: z.string().optional().meta({ description: 'The id of the older key that this key replaced.' }),
  replacedBy: z.string().optional(),
  lastClient: z.string().optional().meta({ description: 'The name that the client of the last use gave itself.' }),
})
/** `key` is never shown again. */
export const NewApiKey = ApiKey.extend({ key: z.string() })
export const ApiKeyOrder = z.strictObject({
  name,
  scopes: listOf(Scope, 100, 1),
  expiresAt: time.exactOptional(),
  teamIds: listOf(id, 1000, 1).exactOptional(),
  datasourceIds: listOf(id, 1000, 1).exactOptional(),
})
/** `expiresAt: null` removes the expiry. */
export const ApiKeyChange = z.strictObject({ name: name.exactOptional(), expiresAt: time.nullable().exactOptional() })
export const Rotation = z.strictObject({ graceSeconds: z.int().min(0).max(86_400).exactOptional() })
export const TeamKey = ApiKey.extend({ accountId: z.string(), email: z.string() })

export const Grant = z.object({
  id: z.string(),
  clientName: z.string().meta({ description: 'The name that the agent gave itself.' }),
  clientHost: z.string().meta({ description: 'The host that is responsible for the agent.' }),
  scopes: z.array(Scope),
  teamIds: z.array(z.string()).nullable(),
  datasourceIds: z.array(z.string()).nullable(),
  createdAt: at,
  lastUsedAt: at.nullable(),
  expiresAt: at.nullable(),
})
/** No field can widen the grant. */
export const GrantChange = z.strictObject({
  scopes: listOf(Scope, 100, 1).exactOptional(),
  teamIds: listOf(id, 1000, 1).exactOptional(),
  datasourceIds: listOf(id, 1000, 1).exactOptional(),
  expiresAt: time.exactOptional(),
})
export const TeamGrant = Grant.extend({ accountId: z.string(), email: z.string() })

// ── teams and members ────────────────────────────────────────────────────────────────────────────────────────────

const QueryBudget = z.strictObject({ limit: z.int().min(1).max(10_000_000), windowSeconds: z.int().min(1).max(86_400) })
export const TeamSettings = z.strictObject({
  queryBudget: QueryBudget,
  rowCap: z.int().min(1).max(50_000),
  maxResponseBytes: z.int().min(65_536).max(67_108_864),
  statementTimeoutMs: z.int().min(100).max(60_000),
  postgresMaxPlanCost: z.number().min(1).max(1e15),
  mongodbMaxScannedDocuments: z.int().min(1).max(1e15),
  bigqueryMaxBytes: z
    .int()
    .min(2 ** 20)
    .max(2 ** 50),
  auditRetentionDays: z.int().min(1).max(3650),
  auditRedactLiterals: z.boolean(),
  /** If true, the team's routes refuse members without a second factor, and their keys. */
  requireSecondFactor: z.boolean(),
})
/** Absent fields stay unchanged. A nested object is replaced as a whole. */
const TeamSettingsChange = z.strictObject({
  queryBudget: QueryBudget.exactOptional(),
  rowCap: TeamSettings.shape.rowCap.exactOptional(),
  maxResponseBytes: TeamSettings.shape.maxResponseBytes.exactOptional(),
  statementTimeoutMs: TeamSettings.shape.statementTimeoutMs.exactOptional(),
  postgresMaxPlanCost: TeamSettings.shape.postgresMaxPlanCost.exactOptional(),
  mongodbMaxScannedDocuments: TeamSettings.shape.mongodbMaxScannedDocuments.exactOptional(),
  bigqueryMaxBytes: TeamSettings.shape.bigqueryMaxBytes.exactOptional(),
  auditRetentionDays: TeamSettings.shape.auditRetentionDays.exactOptional(),
  auditRedactLiterals: TeamSettings.shape.auditRedactLiterals.exactOptional(),
  requireSecondFactor: TeamSettings.shape.requireSecondFactor.exactOptional(),
})

const slug = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'must be lower-case letters, digits and single hyphens')
export const TeamOrder = z.strictObject({ name, slug: slug.exactOptional() })
export const TeamChange = z.strictObject({
  name: name.exactOptional(),
  slug: slug.exactOptional(),
  settings: TeamSettingsChange.exactOptional(),
})
/** `settings` is absent if the caller is INVITED. */
export const TeamDetail = Team.extend({ settings: TeamSettings.optional() })

/** `invitationId` is set for an invited address that is not a member yet. */
export const Member = z.object({
  invitationId: z.string().optional(),
  accountId: z.string().nullable(),
  email: z.string(),
  name: z.string().nullable(),
  role: Role,
  status: MembershipStatus,
  createdAt: at,
  expiresAt: at.optional(),
})
/** The answer does not reveal whether the address has an account. `inviteToken` is never shown again. */
export const Invited = Member.extend({ inviteToken: z.string() })
export const MemberOrder = z.strictObject({ email: z.email().max(254), role: Role })
export const MemberChange = z.strictObject({ role: Role })

// ── datasources ──────────────────────────────────────────────────────────────────────────────────────────────────

const secret = text(65_536)
const connection = {
  connectionMode: ConnectionMode.exactOptional(),
  host: text(1024).exactOptional(),
  port: z.int().min(1).max(65_535).exactOptional(),
  database: text(1024).exactOptional(),
  username: text(1024).exactOptional(),
  sslMode: SslMode.exactOptional(),
  config: z.record(text(256), z.unknown()).exactOptional(),
  accessMode: AccessMode.exactOptional(),
  minRole: Role.nullable().exactOptional(),
  // Secrets can be written, but never read.
  password: secret.exactOptional(),
  uri: secret.exactOptional(),
  serviceAccountKey: secret.exactOptional(),
  tlsCa: secret.exactOptional(),
  tlsCertificate: secret.exactOptional(),
  tlsKey: secret.exactOptional(),
  sshPrivateKey: secret.exactOptional(),
  sshPassphrase: secret.exactOptional(),
  sshPassword: secret.exactOptional(),
}
export const DatasourceOrder = z.strictObject({ name, type: DatasourceType, ...connection })
export const DatasourceChange = z.strictObject({ name: name.exactOptional(), ...connection })

/** A connection can be tested before it is saved, so the name is optional. */
export const DatasourceTrial = z.strictObject({ name: name.exactOptional(), type: DatasourceType, ...connection })

const TestStep = z.object({
  id: z.string().meta({ description: 'Stable. Each kind of database has its own steps.' }),
  name: z.string(),
  status: Grade,
  message: z.string(),
  field: z.string().nullable().meta({ description: 'The field of the connection that the step is about.' }),
  remedy: z.string().nullable(),
  remedyId: z.string().nullable().meta({ description: 'The key of the remedy in `remedies`.' }),
  remedyKind: z.enum(['SQL', 'MONGO', 'GCLOUD', 'TEXT']).nullable(),
})
export const TestReport = z.object({
  ok: z.boolean(),
  latencyMs: z.number().min(0),
  serverVersion: z.string().nullable(),
  steps: z.array(TestStep),
  remedies: z.record(z.string(), z.string()).meta({ description: 'Each remedy once, by remedyId.' }),
  grade: Grade,
  error: z.string().optional(),
  testedAt: at,
})
/** `parsed` has the values in the URI, but no secrets. */
export const TrialReport = TestReport.extend({
  parsed: z
    .object({
      host: z.string().nullable(),
      port: count.nullable(),
      database: z.string(),
      username: z.string().nullable(),
      sslMode: z.string().nullable(),
      config: z.record(z.string(), z.unknown()),
    })
    .nullable()
    .meta({ description: 'The values in the URI. Null if connectionMode is not URI.' }),
  contradictions: z.array(
    z.object({
      field: z.string(),
      inUri: z.union([z.string(), z.number()]).nullable(),
      given: z.union([z.string(), z.number()]).nullable(),
    }),
  ),
})

export const Introspected = z.object({
  schemaCapturedAt: at,
  tableCount: count,
  added: count,
  removed: count,
  changed: count,
})
export const JobStarted = z.object({ jobId: z.string() })
const JobState = z.enum(['QUEUED', 'RUNNING', 'DONE', 'FAILED', 'CANCELLED'])
export const JobFilter = z.strictObject({ state: JobState.exactOptional(), kind: text(100).exactOptional() })
export const Job = z.object({
  id: z.string(),
  kind: z.string(),
  state: JobState,
  done: count,
  total: count,
  step: z.string().nullable(),
  /** Null if the service started the job. `name` is null if the account was deleted. */
  startedBy: z.object({ accountId: z.string(), name: z.string().nullable() }).nullable(),
  result: z.unknown().optional(),
  error: z.string().optional(),
  createdAt: at,
  updatedAt: at,
})

export const Access = z.object({ accountIds: z.array(z.string()) })
export const AccessPut = z.strictObject({ accountIds: listOf(id, 10_000) })

export const CheckResult = z.object({
  verdict: z.enum(['ALLOWED', 'DENIED', 'INVALID']),
  error: z.string().optional(),
  blocked: Blocked.optional(),
  hint: z.string().optional(),
  position: count.optional(),
  printed: z.string().optional(),
  estimate: z.number().min(0).optional(),
})
const OF_CHECK = {
  as: z.unknown().exactOptional(),
  draft: z
    .boolean()
    .exactOptional()
    .meta({ description: 'True while a person is typing the query. The audit then only counts checks.' }),
}
export const CheckBody = z.union([SqlBody.extend(OF_CHECK), MongoBody.extend(OF_CHECK)])

// ── the description, as an agent reads it ─────────────────────────────────────────────────────────────────────────

const Detail = z.enum(['names', 'columns', 'full'])
export const AgentViewAsk = z.strictObject({
  as: text(200).min(1).exactOptional().meta({ description: 'OWNER, ADMIN, MEMBER, or the id of one of your keys.' }),
  detail: Detail.exactOptional().meta({ description: 'Default: columns if they fit into a page, otherwise names.' }),
  cursor: text(512).exactOptional(),
})
export const AgentView = z.object({
  /** Why this role or key cannot reach the datasource. Null if it can. */
  barred: z.string().nullable(),
  /** The answer of describe_datasource, with the approximate size of `schema` in tokens. Null if `barred` is set. */
  page: z
    .object({
      id: z.string(),
      name: z.string(),
      type: DatasourceType,
      queryLanguage: z.string(),
      schemaCapturedAt: at.nullable(),
      profileCapturedAt: at.nullable(),
      tableCount: count,
      shown: count,
      detail: Detail,
      schema: z.string(),
      nextCursor: z.string().nullable(),
      tokens: count,
    })
    .nullable(),
})

// ── audit ────────────────────────────────────────────────────────────────────────────────────────────────────────

export const Page = z.strictObject({
  cursor: text(512).exactOptional(),
  limit: z.coerce.number().int().min(1).max(500).exactOptional(),
})
