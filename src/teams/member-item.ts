import type { Role } from '../contract/schemas.ts'
import type { Membership } from './require-membership.ts'

/** A member, or with `invitationId`, an invited address that is not a member yet. */
export interface Member {
  readonly invitationId?: string
  readonly accountId: string | null
  readonly email: string
  readonly name: string | null
  readonly role: Role
  readonly status: Membership['status']
  readonly createdAt: string
  readonly expiresAt?: string
}
