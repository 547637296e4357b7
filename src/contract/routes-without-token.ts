// Routes without an API key or access token, because the path contains a secret.
import { z } from 'zod'
import type { Code } from '../errors.ts'
import { at, Role } from './schemas.ts'

interface OpenRoute {
  readonly method: 'GET'
  readonly path: string
  readonly summary: string
  readonly answer: z.ZodType
  readonly errors: readonly Code[]
}

export const OPEN_ROUTES = {
  getInvitation: {
    method: 'GET',
    path: '/invitations/{inviteToken}',
    summary: 'Shows a pending invitation to the holder of its token.',
    answer: z.object({
      team: z.string().meta({ description: 'The name of the team.' }),
      role: Role,
      email: z.string(),
      invitedBy: z
        .string()
        .nullable()
        .meta({ description: 'The name of the person who invited. Null if the account was deleted.' }),
      expiresAt: at,
    }),
    errors: ['NOT_FOUND', 'RATE_LIMITED'],
  },
} as const satisfies Record<string, OpenRoute>
