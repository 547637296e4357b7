import type { Role } from '../contract/schemas.ts'
import type { Membership } from './require-membership.ts'

/** A member. With `invitationId`, an address that was invited and is not a member yet. */
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
