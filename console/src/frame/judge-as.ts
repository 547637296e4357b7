// The identities for which a query can be checked: the person, a role that is not above the person's own, or a key of
// the person.
import { useRead } from '../api/queries.ts'
import type { Option } from '../parts/Select.tsx'
import { hasRole, ROLE_NAMES, useTeam } from './current-team.ts'

export const ME = 'me'

/** Returns the options. Their values are `me`, `role:ROLE` and `key:ID`. */
export function useAsOptions(): readonly Option<string>[] {
  const team = useTeam()
  const keys = useRead('listKeys', {}).data ?? []
  const roles = (['MEMBER', 'ADMIN', 'OWNER'] as const).filter((role) => hasRole(team, role))
  return [
    { value: ME, label: 'Me' },
    ...roles.map((role) => ({ value: `role:${role}`, label: ROLE_NAMES[role], note: 'role' })),
    ...keys.map(({ id, name, hint }) => ({ value: `key:${id}`, label: name, note: `key …${hint}` })),
  ]
}

/** Parses a value of useAsOptions. Returns null for the person. */
export function asParts(chosen: string): { readonly kind: 'role' | 'key'; readonly value: string } | null {
  const [kind, value = ''] = chosen.split(':')
  return kind === 'role' || kind === 'key' ? { kind, value } : null
}
