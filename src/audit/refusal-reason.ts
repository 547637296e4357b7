// Reads the reason of a refusal from an AppError. Leaves out other errors, because their text may contain anything.
import { z } from 'zod'
import { AppError } from '../errors.ts'
import type { Reason } from './row-detail.ts'

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

export function reasonOf(error: unknown): Reason & { readonly blocked?: z.infer<typeof Blocked> | undefined } {
  return error instanceof AppError ? { error: error.message, ...Extra.parse(error.extra) } : {}
}
