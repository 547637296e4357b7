// What of the audit and of usage goes over the wire.
import { z } from 'zod'
import { STATUS } from '../errors.ts'
import { at, Blocked, Page } from './schemas.ts'

const id = z.string().regex(/^[\w-]{1,200}$/, 'can be no id')
/** With a zone: which day it is elsewhere is not guessed. */
const time = z.iso.datetime({ offset: true })
const Outcome = z.enum(['ANSWERED', 'DENIED', 'FAILED'])

const filter = {
  datasourceId: id.exactOptional(),
  accountId: id.exactOptional(),
  keyId: id.exactOptional(),
  action: z
    .string()
    .regex(/^[a-z][A-Za-z]{0,63}$/, 'can be no operation')
    .exactOptional(),
  outcome: Outcome.exactOptional(),
  code: z.enum(Object.keys(STATUS)).exactOptional(),
  from: time.exactOptional().meta({ description: 'From then on.' }),
  to: time.exactOptional().meta({ description: 'Before then.' }),
}

export const AuditQuery = Page.extend(filter)
export const AuditExportQuery = z.strictObject({ ...filter, format: z.enum(['csv', 'jsonl']).exactOptional() })

export const AuditItem = z.object({
  id: z.string(),
  at,
  actor: z.object({
    accountId: z.string().nullable(),
    keyId: z.string().optional(),
    client: z.string().optional().meta({ description: 'The calling program, as it names itself.' }),
  }),
  via: z.enum(['API_KEY', 'SESSION', 'CONNECTOR']),
  action: z.string(),
  datasourceId: z.string().optional(),
  outcome: Outcome,
  code: z.string().optional(),
  blocked: Blocked.optional(),
  query: z.string().optional(),
  printed: z.string().optional(),
  redacted: z.literal(true).optional().meta({
    description: 'The literals of the texts were taken out, or the texts left out where that could not be done.',
  }),
  rowCount: z.int().optional(),
  bytes: z.int().optional(),
  durationMs: z.number().optional(),
  /** How many calls the row stands for, where more than one. */
  times: z.int().optional(),
})
export const AuditPage = z.object({ items: z.array(AuditItem), nextCursor: z.string().nullable() })

export const UsageQuery = z.strictObject({ days: z.coerce.number().int().min(1).max(366).exactOptional() })

const counts = {
  /** Answered, denied and failed ones. */
  queries: z.int(),
  denied: z.int(),
  failed: z.int(),
  /** Of the answers. */
  rows: z.int(),
}

export const Usage = z.object({
  budget: z.object({
    limit: z.int(),
    remaining: z.int(),
    resetsAt: at.nullable().meta({ description: 'Null while nothing is spent.' }),
  }),
  days: z.array(z.object({ date: z.iso.date(), ...counts })),
  keys: z.array(z.object({ accountId: z.string(), keyId: z.string().nullable(), ...counts })),
  datasources: z.array(z.object({ datasourceId: z.string(), ...counts })),
})
