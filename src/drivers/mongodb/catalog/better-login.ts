// The lines that make a login no wider than an exposure, for a person to read and run in mongosh. It decides nothing and
// is never run by the service.
import type { Catalog } from '../../driver.ts'

export interface BetterLogin {
  /** Of the login now; the better one gets another name. */
  readonly user: string | null
  readonly database: string
  /** Null before any exposure. */
  readonly exposed: Catalog | null
}

/** createRole and createUser, for an administrator of users. `find` alone: with listCollections it would see all names. */
export function betterLogin({ user, database, exposed }: BetterLogin): string {
  const name = user === 'vitrine_reader' ? 'vitrine_reader_2' : 'vitrine_reader'
  const db = JSON.stringify(database)
  const privileges = (exposed?.tables ?? []).map(
    ({ table }) => `    { resource: { db: ${db}, collection: ${JSON.stringify(table)} }, actions: ["find"] },`,
  )
  const none = privileges.length === 0
  return [
    `use ${database}`,
    'db.createRole({',
    `  role: "${name}",`,
    `  privileges: [${none ? '],' : ''}`,
    ...(none ? ['  // Once an exposure is saved, test again: a line for each collection stands here.'] : privileges),
    ...(none ? [] : ['  ],']),
    '  roles: [],',
    '})',
    `db.createUser({ user: "${name}", pwd: passwordPrompt(), roles: ["${name}"] })`,
  ].join('\n')
}
