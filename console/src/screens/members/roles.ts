import type { Role } from '../../api/types.ts'
import { hasRole, ROLE_NAMES } from '../../frame/current-team.ts'

const ROLES: readonly Role[] = ['MEMBER', 'ADMIN', 'OWNER']

/** Returns the roles up to the person's own, because nobody can grant a higher role. */
export const rolesUpTo = (own: Role) =>
  ROLES.filter((role) => hasRole({ role: own }, role)).map((value) => ({ value, label: ROLE_NAMES[value] }))
