import type * as mongodb from 'mongodb'
import { z } from 'zod'

const Resource = z.object({
  db: z.string().optional(),
  collection: z.string().optional(),
  cluster: z.boolean().optional(),
  anyResource: z.boolean().optional(),
})

const Privilege = z.object({ resource: Resource, actions: z.array(z.string()) })
export type Privilege = z.infer<typeof Privilege>

const Status = z.object({
  authInfo: z.object({
    authenticatedUsers: z.array(z.object({ user: z.string(), db: z.string() })).default([]),
    authenticatedUserRoles: z.array(z.object({ role: z.string(), db: z.string() })).default([]),
    authenticatedUserPrivileges: z.array(Privilege).default([]),
  }),
})

export interface Privileges {
  /** Null if the server requires no login. Anyone who can connect can then do everything. */
  readonly user: { readonly user: string; readonly db: string } | null
  readonly roles: readonly { readonly role: string; readonly db: string }[]
  readonly privileges: readonly Privilege[]
}

export async function privilegesOf(db: mongodb.Db, signal: AbortSignal): Promise<Privileges> {
  const status = Status.parse(await connectionStatus(db, signal))
  const { authenticatedUsers, authenticatedUserRoles, authenticatedUserPrivileges } = status.authInfo
  return {
    user: authenticatedUsers[0] ?? null,
    roles: authenticatedUserRoles,
    privileges: authenticatedUserPrivileges,
  }
}

const COMMAND_NOT_FOUND = 59

/** Embedded MongoDB has no logins, and lacks this command. Its status has no user. */
async function connectionStatus(db: mongodb.Db, signal: AbortSignal): Promise<unknown> {
  try {
    return await db.command({ connectionStatus: 1, showPrivileges: true }, { signal })
  } catch (error) {
    if (Reflect.get(Object(error), 'code') !== COMMAND_NOT_FOUND) throw error
    return { authInfo: {} }
  }
}
