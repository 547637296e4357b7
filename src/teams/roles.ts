// What a role and a membership permit (docs/session.md#roles and #reach).
import type { Role } from '../contract/schemas.ts'
import type { MembershipTable } from '../store/tables.ts'

const RANK = { OWNER: 3, ADMIN: 2, MEMBER: 1 } as const satisfies Record<Role, number>

export interface Standing {
  readonly role: Role
  readonly status: MembershipTable['status']
}

export function roleAtLeast(role: Role, min: Role): boolean {
  return RANK[role] >= RANK[min]
}

/** `listed` is true if the member is on the datasource's access list. An INVITED member reaches nothing. */
export function canReach(
  member: Standing,
  datasource: { readonly accessMode: 'ROLE_BASED' | 'EXPLICIT'; readonly minRole: Role },
  listed: boolean,
): boolean {
  if (member.status !== 'ACTIVE') return false
  switch (datasource.accessMode) {
    case 'ROLE_BASED':
      return roleAtLeast(member.role, datasource.minRole)
    case 'EXPLICIT':
      return listed || member.role === 'OWNER'
    default:
      return datasource.accessMode satisfies never
  }
}

/** Returns true if the role is not above the granter's own. The caller must also require ADMIN. */
export function canGrant(granter: Standing, role: Role): boolean {
  return roleAtLeast(granter.role, role)
}

/** Only an OWNER may change an OWNER. The caller must also require ADMIN. */
export function canTouch(toucher: Standing, target: Standing): boolean {
  return toucher.role === 'OWNER' || target.role !== 'OWNER'
}
