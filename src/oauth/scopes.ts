// The scopes that an agent can ask for, in the order of the consent page.
import type { Scope } from '../auth/caller.ts'

export const SCOPES = ['profile', 'data:schema', 'data:read'] as const satisfies readonly Scope[]

/** Parses a list that is separated by spaces. Drops unknown scopes. */
export function scopesIn(list: string | null): readonly Scope[] {
  const asked = new Set((list ?? '').split(' '))
  return SCOPES.filter((scope) => asked.has(scope))
}
