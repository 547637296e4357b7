// Grades a login for the connection test. Warns about rights that are not needed to read the exposed columns, with a
// remedy, usually SQL. The test fails only if the database cannot be used. Changes nothing in the database.
import type { Catalog, TestStep } from '../../driver.ts'
import { few, pass, warn } from '../../test-report.ts'
import { isTrueAt, textAt, type Ask, type Row } from './run-catalog-query.ts'
import * as catalog from './catalog-queries.ts'
import * as queries from './grade-login-queries.ts'
import {
  betterLogin,
  closeSchema,
  grantAll,
  grantColumns,
  limitTemporaryFiles,
  type Shown,
} from './least-privilege-login.ts'
import { OLDEST_SERVER, readMade, readServer, versionName, type ServerFacts } from './introspect.ts'
import { readExtensions } from './trusted-extensions.ts'

interface Facts {
  readonly server: ServerFacts
  readonly user: string
  readonly bypassesRowSecurity: boolean
  readonly isEncrypted: boolean
  readonly isLocal: boolean
  readonly temporaryFiles: string
  readonly roles: readonly string[]
  readonly writable: readonly string[]
  readonly owned: readonly string[]
  /** Schemas on the login's search_path, or of trusted extensions, in which the login may create objects. */
  readonly creatable: readonly string[]
  /** The same schemas for PUBLIC. */
  readonly open: readonly string[]
  readonly mayCreateSchemas: boolean
  readonly made: readonly { readonly what: string; readonly isBuiltIn: boolean; readonly drop: string }[]
  readonly missing: readonly Shown[]
  /** The number of columns that the login may read. */
  readonly readable: number
  /** How many of these columns are not exposed. */
  readonly beyond: number
  readonly exposed: Catalog | null
  readonly better: string
}

/** Returns the steps in a fixed order. `exposed` is the exposed part of the catalog, or null without an exposure. */
export async function grade(ask: Ask, exposed: Catalog | null, signal: AbortSignal): Promise<TestStep[]> {
  const server = await readServer(ask, signal)
  const first = [connected(server), serverVersion(server)]
  // The queries below need the catalogs of PostgreSQL 14 or newer.
  if (server.version < OLDEST_SERVER) return first
  const facts = await readFacts(ask, server, exposed, signal)
  return [...first, ...judges.map((judge) => judge(facts))]
}

async function readFacts(ask: Ask, server: ServerFacts, exposed: Catalog | null, signal: AbortSignal): Promise<Facts> {
  const [login] = await ask(queries.login, signal)
  if (login === undefined) throw new TypeError('the server does not know who is asking')
  const user = textAt(login, 0)
  const names = (rows: readonly Row[]): string[] => rows.map((row) => textAt(row, 0))
  const extensions = readExtensions(await ask(catalog.extensions, signal), [])
  const trusted = [...extensions.values()].filter((one) => one.trusted).map((one) => one.schema)
  const schemas = (await ask(queries.creatable, signal)).filter((row) =>
    [...server.searchPath, ...trusted].includes(textAt(row, 0)),
  )
  const open = names(schemas.filter((row) => isTrueAt(row, 2)))
  const made = await readMade(ask, extensions, signal)
  return {
    server,
    user,
    bypassesRowSecurity: isTrueAt(login, 2),
    isEncrypted: isTrueAt(login, 3),
    isLocal: isTrueAt(login, 4),
    temporaryFiles: textAt(login, 5),
    mayCreateSchemas: isTrueAt(login, 6),
    roles: server.isSuperuser ? [] : names(await ask(queries.roles, signal)),
    writable: names(await ask(queries.writable, signal)),
    owned: names(await ask(queries.owned, signal)),
    creatable: names(schemas.filter((row) => isTrueAt(row, 1))),
    open,
    made: made.map((one) => ({ ...one, isBuiltIn: one.types.every((oid) => oid < 16384) })),
    ...compared(exposed, await ask(queries.readableColumns, signal)),
    exposed,
    better: betterLogin({
      role: user === 'vitrine_reader' ? 'vitrine_reader_2' : 'vitrine_reader',
      database: server.database,
      exposed,
      schemas: [...trusted, ...typeSchemas(exposed)].filter((schema) => schema !== 'pg_catalog'),
      openSchemas: open,
    }),
  }
}

function typeSchemas(exposed: Catalog | null): string[] {
  const columns = exposed?.tables.flatMap((table) => table.columns) ?? []
  return [...new Set(columns.flatMap((column) => schemaOf(column.detail)))]
}

function schemaOf(detail: unknown): string[] {
  if (typeof detail !== 'object' || detail === null || !('type' in detail)) return []
  const { type } = detail
  if (typeof type !== 'object' || type === null || !('schema' in type)) return []
  return typeof type.schema === 'string' ? [type.schema] : []
}

/** Compares the exposed columns with those that the login may read. */
function compared(exposed: Catalog | null, readable: readonly Row[]): Pick<Facts, 'missing' | 'readable' | 'beyond'> {
  if (exposed === null) return { missing: [], readable: readable.length, beyond: 0 }
  const key = (...names: readonly string[]): string => JSON.stringify(names)
  const may = new Set(readable.map((row) => key(textAt(row, 0), textAt(row, 1), textAt(row, 2))))
  const shown = exposed.tables.map(({ schema, table, columns }) => ({
    schema,
    table,
    columns: columns.map((column) => column.name),
  }))
  const missing = shown
    .map((one) => ({ ...one, columns: one.columns.filter((name) => !may.has(key(one.schema, one.table, name))) }))
    .filter((one) => one.columns.length > 0)
  const wanted = new Set(shown.flatMap((one) => one.columns.map((name) => key(one.schema, one.table, name))))
  return { missing, readable: readable.length, beyond: [...may].filter((one) => !wanted.has(one)).length }
}

function connected(server: ServerFacts): TestStep {
  return pass('connection', `Connected to the database ${server.database}.`)
}

function serverVersion(server: ServerFacts): TestStep {
  const name = versionName(server.version)
  if (server.version >= OLDEST_SERVER) return pass('server version', `The server is PostgreSQL ${name}.`)
  const message = `The server is PostgreSQL ${name}; 14 is the oldest that can be used.`
  return { name: 'server version', status: 'FAIL', message, remedy: 'Upgrade the server to PostgreSQL 14 or newer.' }
}

const judges: readonly ((facts: Facts) => TestStep)[] = [
  function tls({ isEncrypted, isLocal }) {
    if (isEncrypted) return pass('tls', 'The connection is encrypted.')
    if (isLocal) return pass('tls', 'The connection is not encrypted; it does not leave this machine.')
    return warn(
      'tls',
      'The connection is not encrypted: the password and every row cross the network in plain text.',
      'Set sslMode to verify-full, and tlsCa to the certificate of the authority that signed the server’s certificate.',
    )
  },
  function superuser({ server, user, better }) {
    if (!server.isSuperuser) return pass('superuser', `The login ${user} is not a superuser.`)
    return warn('superuser', `The login ${user} is a superuser: no rule of the database restricts it.`, better)
  },
  function writes({ server, writable, better }) {
    if (server.isSuperuser) return warn('writes', 'As a superuser, the login may write to every table.', better)
    if (writable.length === 0) return pass('writes', 'The login may not change any table.')
    return warn('writes', `The login may change ${few(writable)}.`, better)
  },
  function ownership({ owned, better }) {
    if (owned.length === 0) return pass('ownership', 'The login owns no table.')
    return warn('ownership', `The login owns ${few(owned)}: it may read and grant all of them.`, better)
  },
  function rowSecurity({ server, bypassesRowSecurity, better }) {
    if (!server.isSuperuser && !bypassesRowSecurity)
      return pass('row security', 'Row-level security applies to the login.')
    return warn('row security', 'Row-level security does not apply to the login (superuser or BYPASSRLS).', better)
  },
  function memberships({ server, roles, better }) {
    if (server.isSuperuser) return warn('roles', 'As a superuser, the login has every role.', better)
    if (roles.length === 0) return pass('roles', 'The login has no role that bypasses grants.')
    return warn('roles', `The login has roles that bypass grants: ${few(roles)}.`, better)
  },
  function creates({ creatable, open, mayCreateSchemas, better }) {
    const where = [
      ...creatable.map((name) => `objects in the schema ${name}`),
      ...(mayCreateSchemas ? ['new schemas'] : []),
    ]
    if (where.length === 0) return pass('creates', 'The login may not create objects in a schema of the search path.')
    const onlyAsAnybody = !mayCreateSchemas && creatable.every((name) => open.includes(name))
    const remedy = onlyAsAnybody ? open.map(closeSchema).join('\n') : better
    return warn('creates', `The login may create ${few(where)}.`, remedy)
  },
  function publicCreates({ open }) {
    if (open.length === 0)
      return pass('public creates', 'PUBLIC may not create objects in a schema of the search path.')
    const message = `Every login may create objects in the schema ${few(open)}, and another login’s query could call such an object.`
    return warn('public creates', message, open.map(closeSchema).join('\n'))
  },
  function casts({ made }) {
    const name = 'casts and operator classes'
    const closing = made.filter((one) => one.isBuiltIn)
    const remedy = made.map((one) => one.drop).join('\n')
    if (made.length === 0)
      return pass(name, 'No user-defined cast or operator class can run in a query that does not name it.')
    const what = few(made.map((one) => one.what))
    if (closing.length === 0)
      return warn(name, `Queries may call ${what} without naming it. Columns of its types cannot be exposed.`, remedy)
    const message = `Every query could run ${few(closing.map((one) => one.what))}, although it names none of them.`
    return { name, status: 'FAIL', message, remedy: closing.map((one) => one.drop).join('\n') }
  },
  function temporaryFiles({ temporaryFiles: limit, user }) {
    if (limit !== '-1') return pass('temporary files', `A session may use ${limit} of temporary files.`)
    return pass(
      'temporary files',
      'A session may fill the disk with temporary files until its query times out. Set a limit.',
      limitTemporaryFiles(user),
    )
  },
  function grants({ exposed, missing, readable, beyond, user, better }) {
    if (readable === 0 && missing.length === 0) {
      return warn(
        'grants',
        'The login may not read any table: there is nothing to introspect.',
        grantAll('public', user),
      )
    }
    if (exposed === null)
      return pass('grants', 'The grants were not compared with the exposure, because no table is exposed yet.')
    if (missing.length > 0) {
      const lines = missing.map((table) => grantColumns(table, user)).join('\n')
      const message = `The login may not read exposed columns of ${few(missing.map((one) => `${one.schema}.${one.table}`))}.`
      return warn('grants', message, lines)
    }
    if (beyond === 0) return pass('grants', 'The login may read the exposed columns and nothing else.')
    return pass(
      'grants',
      `The login may read ${beyond} columns that are not exposed; only this service hides them.`,
      better,
    )
  },
]
