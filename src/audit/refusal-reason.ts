// Pure: reads the reason of a refusal or failure from its AppError. Any other error gives no reason: its text may
// contain anything, so it is only logged.
import { z } from 'zod'
import { AppError } from '../errors.ts'
import type { Reason } from './row-detail.ts'

/** What was blocked, as the refusal names it (docs/contract.md). */
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

/** Returns the reason, and which part of a query was blocked. */
export function reasonOf(error: unknown): Reason & { readonly blocked?: z.infer<typeof Blocked> | undefined } {
  return error instanceof AppError ? { error: error.message, ...Extra.parse(error.extra) } : {}
}
