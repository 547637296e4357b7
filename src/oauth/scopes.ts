// The scopes that an agent can ask for. The consent page shows them in this order.
import type { Scope } from '../auth/caller.ts'

export const SCOPES = ['profile', 'data:schema', 'data:read'] as const satisfies readonly Scope[]

/** The list is separated by spaces. Unknown scopes are dropped. */
export function scopesIn(list: string | null): readonly Scope[] {
  const asked = new Set((list ?? '').split(' '))
  return SCOPES.filter((scope) => asked.has(scope))
}
