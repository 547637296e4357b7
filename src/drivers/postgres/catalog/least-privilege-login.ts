// Writes SQL that restricts a login to an exposure. The service never runs this SQL: a person does.
import type { Agreement, AgreementInput, Catalog } from '../../driver.ts'
import { identifier } from '../quote.ts'

export interface Shown {
  readonly schema: string
  readonly table: string
  readonly columns: readonly string[]
}

export interface BetterLogin {
  readonly role: string
  readonly database: string
  /** The exposed part of the catalog, or null before the first exposure. */
  readonly exposed: Catalog | null
  /** Other schemas that the login needs USAGE on, for types, functions and operators of queries. */
  readonly schemas: readonly string[]
  /** Schemas in which PUBLIC may create objects. */
  readonly openSchemas: readonly string[]
}

/** The limit on the temporary files of a session, if the administrator has set none. */
const temporaryFiles = '1GB'

/**
 * Returns SQL that creates a login, for a superuser or the owner of the objects. The SQL names each column, even of a
 * table that is exposed as a whole, so that the login cannot read columns that are added later.
 */
export function betterLogin(login: BetterLogin): string {
  const role = identifier(login.role)
  const tables = login.exposed?.tables.filter((table) => table.columns.length > 0) ?? []
  const shown = tables.map(({ schema, table, columns }) => ({ schema, table, columns: columns.map((one) => one.name) }))
  const schemas = new Set([...shown.map((table) => table.schema), ...login.schemas])
  const lines = [
    `CREATE ROLE ${role} LOGIN;`,
    `-- Its password, in psql, so that no log contains it: \\password ${role}`,
    `ALTER ROLE ${role} SET default_transaction_read_only = on;`,
    limitTemporaryFiles(login.role),
    `GRANT CONNECT ON DATABASE ${identifier(login.database)} TO ${role};`,
    ...login.openSchemas.map(closeSchema),
    ...[...schemas].map((schema) => `GRANT USAGE ON SCHEMA ${identifier(schema)} TO ${role};`),
    ...shown.map((table) => grantColumns(table, login.role)),
  ]
  if (shown.length === 0)
    lines.push('-- Once an exposure is saved, test again: the GRANT of each shown column then appears here.')
  return lines.join('\n')
}

/**
 * Returns the SQL lines that reduce the rights of an existing login to the exposure. A REVOKE on a table also revokes
 * the rights on its columns (PostgreSQL, REVOKE).
 */
export function agreement({ full, exposed, username }: AgreementInput): Agreement {
  const login = username ?? ''
  const role = identifier(login)
  const schemas = [...new Set(full.tables.map(({ schema }) => schema))]
  const shown = exposed.tables.map(({ schema, table, columns }) => ({
    schema,
    table,
    columns: columns.map((column) => column.name),
  }))
  const lines = [
    'BEGIN;',
    ...schemas.map((schema) => `REVOKE ALL ON ALL TABLES IN SCHEMA ${identifier(schema)} FROM ${role};`),
    ...[...new Set(shown.map(({ schema }) => schema))].map(
      (schema) => `GRANT USAGE ON SCHEMA ${identifier(schema)} TO ${role};`,
    ),
    ...shown.map((table) => grantColumns(table, login)),
    'COMMIT;',
  ]
  return { kind: 'SQL', text: lines.join('\n'), notes: NOTES }
}

const NOTES = [
  'Run the commands as the owner of the tables. They do not affect superusers, owners of the tables, and rights that are granted to PUBLIC or to a role that the login belongs to. Test the connection afterwards.',
  'Later introspections see only what the login may read. To expose more, grant it first.',
]

export function grantColumns(table: Shown, role: string): string {
  const columns = table.columns.map(identifier).join(', ')
  return `GRANT SELECT (${columns}) ON ${identifier(table.schema)}.${identifier(table.table)} TO ${identifier(role)};`
}

/** Returns SQL that lets a new login read a whole schema. After the first exposure, agreement() reduces the rights. */
export function grantAll(schema: string, role: string): string {
  const [place, login] = [identifier(schema), identifier(role)]
  return `GRANT USAGE ON SCHEMA ${place} TO ${login};\nGRANT SELECT ON ALL TABLES IN SCHEMA ${place} TO ${login};`
}

export function limitTemporaryFiles(role: string): string {
  return `ALTER ROLE ${identifier(role)} SET temp_file_limit = '${temporaryFiles}';`
}

export function closeSchema(schema: string): string {
  return `REVOKE CREATE ON SCHEMA ${identifier(schema)} FROM PUBLIC;`
}
