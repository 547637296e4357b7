// The JSON of the audit and of usage.
import { z } from 'zod'
import { STATUS } from '../errors.ts'
import { at, Blocked, count, Page, text, time } from './schemas.ts'

const id = z.string().regex(/^[\w-]{1,200}$/, 'must be an id')
const Outcome = z.enum(['ANSWERED', 'DENIED', 'FAILED'])

const VALUES_MAX = 100

/** Accepts one or several values: separated by commas, or as a repeated parameter. */
function several<V extends z.ZodType>(item: V, split = (text: string): readonly string[] => text.split(',')) {
  const all = z.array(item).min(1).max(VALUES_MAX)
  const read = (sent: unknown) =>
    (Array.isArray(sent) ? sent : [sent]).flatMap((each) => (typeof each === 'string' ? split(each) : [each]))
  return z
    .preprocess(read, all)
    .meta({ ...z.toJSONSchema(all, { io: 'input' }), description: 'Several values are separated by commas.' })
}

/** `table,cost` is split, but `table:orders` is not, because its name may contain commas. */
const splitKinds = (text: string) => (text.includes(':') ? [text] : text.split(','))

const filter = {
  id: several(id).exactOptional(),
  datasourceId: id.exactOptional(),
  accountId: id.exactOptional(),
  keyId: several(id).exactOptional(),
  action: several(z.string().regex(/^[a-z][A-Za-z]{0,63}$/, 'must be an operation id')).exactOptional(),
  kind: several(z.enum(['query', 'change', 'read', 'signIn'])).exactOptional(),
  outcome: several(Outcome).exactOptional(),
  code: several(z.enum(Object.keys(STATUS))).exactOptional(),
  via: several(z.enum(['API_KEY', 'SESSION', 'CONNECTOR'])).exactOptional(),
  client: several(text(200).min(1), (sent) => [sent])
    .exactOptional()
    .meta({ description: 'The exact name of the client. Repeat the parameter for several clients.' }),
  blocked: several(text(1_000).min(1), splitKinds)
    .exactOptional()
    .meta({ description: 'The blocked object: a kind, or kind:name. Repeat the parameter for several names.' }),
  q: text(100)
    .refine((value) => value.trim() !== '', 'must not be empty')
    .exactOptional()
    .meta({ description: 'Searches texts and names of the last 30 days, ignoring case.' }),
  from: time.exactOptional().meta({ description: 'Inclusive.' }),
  to: time.exactOptional().meta({ description: 'Exclusive.' }),
}

export const AuditQuery = Page.extend({
  ...filter,
  after: id.exactOptional().meta({ description: 'Only items that are newer than this one.' }),
})
const { accountId: _account, ...ownFilter } = filter
export const ActivityQuery = Page.extend(ownFilter)
export const AuditExportQuery = z.strictObject({ ...filter, format: z.enum(['csv', 'jsonl']).exactOptional() })

export const Target = z.object({
  kind: z.enum([
    'account',
    'team',
    'member',
    'invitation',
    'key',
    'grant',
    'datasource',
    'exposure',
    'documentation',
    'access',
    'job',
    'request',
    'webhook',
  ]),
  id: z.string(),
  name: z.string(),
})

const Value = z.union([z.string(), z.number(), z.boolean(), z.null(), z.array(z.string())])
const names = z.array(z.string())
/** The number of all items. Present only if the list was truncated. */
const cutCount = count.optional()
const Changes = z.record(
  z.string(),
  z.union([
    z.object({ from: Value, to: Value }),
    z.object({
      added: names,
      removed: names,
      changed: names.optional(),
      addedCount: cutCount,
      removedCount: cutCount,
      changedCount: cutCount,
    }),
  ]),
)

export const AuditItem = z.object({
  id: z.string(),
  at,
  actor: z.object({
    accountId: z.string().nullable(),
    name: z.string().optional(),
    keyId: z.string().optional(),
    grantId: z.string().optional().meta({ description: 'The id of the agent’s grant, if an agent called.' }),
    client: z.string().optional().meta({ description: 'The name that the client gives itself.' }),
  }),
  keyName: z.string().optional(),
  grantName: z.string().optional().meta({ description: 'The name that the agent gave itself for the grant.' }),
  requestId: z.string().optional().meta({
    description: 'The X-Request-Id of the answer. A row that counts several calls has the id of the first.',
  }),
  via: z.enum(['API_KEY', 'SESSION', 'CONNECTOR']),
  action: z.string(),
  datasourceId: z.string().optional(),
  outcome: Outcome,
  target: Target.optional().meta({ description: 'The changed object, with its name at that time.' }),
  changes: Changes.optional().meta({
    description: 'Each changed field with its old and new value. Lists have the added and removed items.',
  }),
  code: z.string().optional(),
  blocked: Blocked.optional(),
  error: z.string().optional().meta({ description: 'The reason of the refusal, as the caller was told.' }),
  hint: z.string().optional(),
  position: count.optional(),
  estimate: z
    .number()
    .min(0)
    .optional()
    .meta({ description: 'The estimated cost of a query that was refused because of its cost.' }),
  limit: z.number().min(0).optional(),
  query: z.string().optional(),
  params: z.unknown().optional(),
  printed: z.string().optional(),
  tables: z
    .array(z.object({ schema: z.string(), table: z.string() }))
    .optional()
    .meta({ description: 'The tables that the query reads.' }),
  redacted: z.literal(true).optional().meta({
    description: 'Literals were removed from the texts. Texts from which they could not be removed are absent.',
  }),
  rowCount: count.optional(),
  bytes: count.optional(),
  durationMs: z.number().min(0).optional(),
  /** How many calls the row counts, if more than one. */
  times: z.int().min(1).optional(),
})
export const AuditPage = z.object({ items: z.array(AuditItem), nextCursor: z.string().nullable() })

export const UsageQuery = z.strictObject({
  days: z.coerce.number().int().min(1).max(366).exactOptional().meta({ description: 'At most 31 with by or step.' }),
  by: z.enum(['key', 'datasource', 'client']).exactOptional(),
  step: z.enum(['hour', 'day']).exactOptional(),
})

const counts = {
  queries: count,
  denied: count,
  failed: count,
  rows: count,
}

const percentile = z
  .number()
  .min(0)
  .nullable()
  .meta({ description: 'Milliseconds of answered queries, exact to about 7 %.' })
const totals = {
  ...counts,
  bytes: count,
  durationMs: z.number().min(0),
  estimate: z
    .number()
    .min(0)
    .meta({ description: 'The sum of the estimated costs of the queries that were refused because of their cost.' }),
  p50Ms: percentile,
  p95Ms: percentile,
}
const points = z.array(z.object({ at, ...totals }))

export const Usage = z.object({
  budget: z.object({
    limit: count,
    remaining: count,
    resetsAt: at.nullable().meta({ description: 'Null if nothing was spent.' }),
  }),
  days: z.array(z.object({ date: z.iso.date(), ...counts })),
  keys: z.array(z.object({ accountId: z.string(), keyId: z.string().nullable(), ...counts })),
  datasources: z.array(z.object({ datasourceId: z.string(), ...counts })),
  points: points.optional().meta({ description: 'With by or step: the hours or days with a query, oldest first.' }),
  series: z
    .array(
      z.object({
        accountId: z.string().optional(),
        keyId: z.string().nullable().optional(),
        datasourceId: z.string().optional(),
        client: z.string().optional(),
        ...totals,
        points,
      }),
    )
    .optional()
    .meta({ description: 'With by: the 20 largest groups.' }),
})
