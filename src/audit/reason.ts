// Pure: why a call was refused, as its error says it. What is not a refusal of ours says nothing here: its words may hold
// anything, and stand in the log.
import { z } from 'zod'
import { AppError } from '../errors.ts'
import type { Reason } from './detail.ts'

/** As a refusal names it (contract.md). */
export const Blocked = z.object({
  kind: z.enum(['table', 'column', 'function', 'type', 'operator', 'statement', 'stage', 'cost', 'limit']),
  name: z.string(),
})

const Extra = z.object({
  blocked: Blocked.optional().catch(undefined),
  hint: z.string().optional().catch(undefined),
  position: z.number().optional().catch(undefined),
  estimate: z.number().optional().catch(undefined),
  limit: z.number().optional().catch(undefined),
})

/** Why, and what of a query was blocked. */
export function reasonOf(error: unknown): Reason & { readonly blocked?: z.infer<typeof Blocked> | undefined } {
  return error instanceof AppError ? { error: error.message, ...Extra.parse(error.extra) } : {}
}
