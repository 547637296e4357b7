// Writes the mongosh commands for a login that can read exactly the exposure. A person reads and runs them; the service
// never does.
import type { Catalog } from '../../driver.ts'

export interface BetterLogin {
  /** The current login's user. The new login gets another name. */
  readonly user: string | null
  readonly database: string
  /** Null before any exposure. */
  readonly exposed: Catalog | null
}

/** createRole and createUser, for a user administrator. Only `find`: listCollections would reveal all names. */
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
    ...(none ? ['  // Save an exposure and test again: this list then has a line for each collection.'] : privileges),
    ...(none ? [] : ['  ],']),
    '  roles: [],',
    '})',
    `db.createUser({ user: "${name}", pwd: passwordPrompt(), roles: ["${name}"] })`,
  ].join('\n')
}
