// A person whose query was refused can request that a manager exposes the refused object.
import { z } from 'zod'
import { at, Blocked, count, text } from './schemas.ts'

export const RefusalsQuery = z.strictObject({ days: z.coerce.number().int().min(1).max(90).exactOptional() })

export const RefusalGroup = z.object({
  datasourceId: z.string(),
  blocked: Blocked,
  schema: z.string().optional(),
  table: z.string().optional(),
  column: z.string().optional(),
  count,
  keys: count.meta({ description: 'The number of distinct API keys and grants.' }),
  accounts: count,
  lastAt: at,
  exampleAuditId: z.string().meta({ description: 'The newest of these queries.' }),
  fixable: z
    .boolean()
    .meta({ description: 'True if a wider exposure may allow the query. exposureFromRefusal returns the change.' }),
})

const why = text(500).refine((value) => value.trim() !== '', 'must not be empty')
const Resolution = z.enum(['EXPOSED', 'DECLINED'])

export const ExposureRequestOrder = z.strictObject({ auditId: text(128).min(1), why })
export const ExposureRequestsQuery = z.strictObject({ state: z.enum(['OPEN', 'CLOSED']).exactOptional() })
export const ExposureRequestEnd = z.strictObject({
  resolution: Resolution.exactOptional(),
  note: text(500).exactOptional(),
})
export const ExposureRequest = z.object({
  id: z.string(),
  datasourceId: z.string(),
  accountId: z.string().meta({ description: 'The account that made the request.' }),
  name: z.string(),
  auditId: z.string(),
  why: z.string(),
  blocked: Blocked,
  state: z.enum(['OPEN', 'CLOSED']),
  createdAt: at,
  closedAt: at.optional(),
  closedBy: z.string().optional(),
  resolution: Resolution.optional(),
  note: z.string().optional(),
})
