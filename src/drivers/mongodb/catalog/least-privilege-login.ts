// Writes the mongosh commands for a login that can read exactly the exposed collections. Vitrine never runs them: a
// person does.
import type { Agreement, AgreementInput, Catalog } from '../../driver.ts'
import { few } from '../../test-report.ts'

export interface BetterLogin {
  /** The user with whom Vitrine connects. The new user gets another name. */
  readonly user: string | null
  readonly database: string
  /** The catalog with only the exposed collections. Null if there is no exposure yet. */
  readonly exposed: Catalog | null
}

export function agreement({ full, exposed, username, database }: AgreementInput): Agreement {
  const collections = new Map(full.tables.map((table) => [table.table, table.columns.length]))
  const partly = exposed.tables.filter(({ table, columns }) => columns.length < (collections.get(table) ?? 0))
  const names = partly.map(({ table }) => table)
  const notes = ['Then set the new login in the connection of this datasource, and remove the old one.']
  if (names.length > 0)
    notes.push(
      `MongoDB grants whole collections: only this service hides paths of ${few(names)}. A view with a $project stage, granted instead of the collection, would hide them in the database too.`,
    )
  return { kind: 'MONGO', text: betterLogin({ user: username, database, exposed }), notes }
}

/**
 * A user administrator runs these commands. The role has only `find`, because listCollections would reveal all names.
 */
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
