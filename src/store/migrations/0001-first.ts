// The first schema. On both dialects, Vitrine's own tables use text, numbers and ISO times. The tables of better-auth
// use the times and booleans of the dialect.
import { sql, type ColumnDefinitionBuilder, type Transaction } from 'kysely'
import type { DialectName, Migration } from '../migration.ts'
import type { Tables } from '../tables.ts'

export const first: Migration = {
  name: '0001-first',
  async up(tx, dialect) {
    await accounts(tx, dialect)
    await signIn(tx, dialect)
    await keys(tx)
    await teams(tx)
    await datasources(tx)
    await exposures(tx)
    await auditAndJobs(tx)
  },
}

type Column = ColumnDefinitionBuilder
const required = (column: Column) => column.notNull()
const id = (column: Column) => column.primaryKey().notNull()
const unique = (column: Column) => column.notNull().unique()
/** The row is deleted together with the row that it references. */
const of = (target: string) => (column: Column) => column.notNull().references(target).onDelete('cascade')
const time = (dialect: DialectName) => (dialect === 'postgres' ? 'timestamptz' : 'text')

async function accounts(tx: Transaction<Tables>, dialect: DialectName): Promise<void> {
  await tx.schema
    .createTable('accounts')
    .addColumn('id', 'text', id)
    .addColumn('name', 'text', required)
    .addColumn('email', 'text', unique)
    .addColumn('emailVerified', dialect === 'postgres' ? 'boolean' : 'integer', required)
    .addColumn('image', 'text')
    .addColumn('createdAt', time(dialect), required)
    .addColumn('updatedAt', time(dialect), required)
    .execute()
  await tx.schema
    .createTable('sessions')
    .addColumn('id', 'text', id)
    .addColumn('userId', 'text', of('accounts.id'))
    .addColumn('token', 'text', unique)
    .addColumn('expiresAt', time(dialect), required)
    .addColumn('ipAddress', 'text')
    .addColumn('userAgent', 'text')
    .addColumn('createdAt', time(dialect), required)
    .addColumn('updatedAt', time(dialect), required)
    .execute()
  await tx.schema.createIndex('sessions_of_account').on('sessions').column('userId').execute()
}

async function signIn(tx: Transaction<Tables>, dialect: DialectName): Promise<void> {
  await tx.schema
    .createTable('sign_in_methods')
    .addColumn('id', 'text', id)
    .addColumn('userId', 'text', of('accounts.id'))
    .addColumn('accountId', 'text', required)
    .addColumn('providerId', 'text', required)
    .addColumn('accessToken', 'text')
    .addColumn('refreshToken', 'text')
    .addColumn('idToken', 'text')
    .addColumn('accessTokenExpiresAt', time(dialect))
    .addColumn('refreshTokenExpiresAt', time(dialect))
    .addColumn('scope', 'text')
    .addColumn('password', 'text')
    .addColumn('createdAt', time(dialect), required)
    .addColumn('updatedAt', time(dialect), required)
    .addUniqueConstraint('one_sign_in_method', ['providerId', 'accountId'])
    .execute()
  await tx.schema.createIndex('sign_in_methods_of_account').on('sign_in_methods').column('userId').execute()
  await tx.schema
    .createTable('verifications')
    .addColumn('id', 'text', id)
    .addColumn('identifier', 'text', required)
    .addColumn('value', 'text', required)
    .addColumn('expiresAt', time(dialect), required)
    .addColumn('createdAt', time(dialect), required)
    .addColumn('updatedAt', time(dialect), required)
    .execute()
  await tx.schema.createIndex('verifications_by_identifier').on('verifications').column('identifier').execute()
  await tx.schema
    .createTable('signing_keys')
    .addColumn('id', 'text', id)
    .addColumn('publicKey', 'text', required)
    .addColumn('privateKey', 'text', required)
    .addColumn('createdAt', time(dialect), required)
    .addColumn('expiresAt', time(dialect))
    .addColumn('alg', 'text')
    .addColumn('crv', 'text')
    .execute()
}

async function keys(tx: Transaction<Tables>): Promise<void> {
  await tx.schema
    .createTable('api_keys')
    .addColumn('id', 'text', id)
    .addColumn('account_id', 'text', of('accounts.id'))
    .addColumn('name', 'text', required)
    .addColumn('hash', 'text', unique)
    .addColumn('hint', 'text', required)
    .addColumn('scopes', 'text', required)
    .addColumn('team_ids', 'text')
    .addColumn('datasource_ids', 'text')
    .addColumn('created_at', 'text', required)
    .addColumn('last_used_at', 'text')
    .addColumn('expires_at', 'text')
    .addColumn('revoked_at', 'text')
    .addColumn('ended_team_ids', 'text', required)
    .execute()
  await tx.schema.createIndex('api_keys_of_account').on('api_keys').column('account_id').execute()
}

async function teams(tx: Transaction<Tables>): Promise<void> {
  await tx.schema
    .createTable('teams')
    .addColumn('id', 'text', id)
    .addColumn('name', 'text', required)
    .addColumn('slug', 'text', unique)
    .addColumn('settings', 'text', required)
    .addColumn('created_at', 'text', required)
    .execute()
  await tx.schema
    .createTable('memberships')
    .addColumn('team_id', 'text', of('teams.id'))
    .addColumn('account_id', 'text', of('accounts.id'))
    .addColumn('role', 'text', (column) => column.notNull().check(sql`role in ('OWNER', 'ADMIN', 'MEMBER')`))
    .addColumn('status', 'text', (column) => column.notNull().check(sql`status in ('INVITED', 'ACTIVE')`))
    .addColumn('created_at', 'text', required)
    .addPrimaryKeyConstraint('one_membership', ['team_id', 'account_id'])
    .execute()
  await tx.schema.createIndex('memberships_of_account').on('memberships').column('account_id').execute()
  await tx.schema
    .createTable('invitations')
    .addColumn('id', 'text', id)
    .addColumn('team_id', 'text', of('teams.id'))
    .addColumn('email', 'text', required)
    .addColumn('role', 'text', (column) => column.notNull().check(sql`role in ('OWNER', 'ADMIN', 'MEMBER')`))
    .addColumn('token_hash', 'text', unique)
    .addColumn('created_at', 'text', required)
    .addColumn('expires_at', 'text', required)
    .addColumn('used_at', 'text')
    .execute()
  await tx.schema.createIndex('invitations_of_team').on('invitations').column('team_id').execute()
}

async function datasources(tx: Transaction<Tables>): Promise<void> {
  await tx.schema
    .createTable('datasources')
    .addColumn('id', 'text', id)
    .addColumn('team_id', 'text', of('teams.id'))
    .addColumn('name', 'text', required)
    .addColumn('type', 'text', required)
    .addColumn('status', 'text', required)
    .addColumn('connection_mode', 'text', required)
    .addColumn('host', 'text')
    .addColumn('port', 'integer')
    .addColumn('database', 'text', required)
    .addColumn('username', 'text')
    .addColumn('ssl_mode', 'text')
    .addColumn('config', 'text', required)
    .addColumn('access_mode', 'text', required)
    .addColumn('min_role', 'text', required)
    .addColumn('created_at', 'text', required)
    .addColumn('updated_at', 'text', required)
    .addColumn('last_tested_at', 'text')
    .addColumn('last_error', 'text')
    .addColumn('connection_version', 'integer', required)
    .addColumn('catalog_version', 'integer', required)
    .addColumn('exposure_version', 'integer', required)
    .execute()
  await tx.schema.createIndex('datasources_of_team').on('datasources').column('team_id').execute()
  await tx.schema
    .createTable('datasource_secrets')
    .addColumn('datasource_id', 'text', of('datasources.id'))
    .addColumn('field', 'text', required)
    .addColumn('sealed', 'text', required)
    .addPrimaryKeyConstraint('one_secret_a_field', ['datasource_id', 'field'])
    .execute()
}

async function exposures(tx: Transaction<Tables>): Promise<void> {
  await tx.schema
    .createTable('catalogs')
    .addColumn('datasource_id', 'text', of('datasources.id'))
    .addColumn('version', 'integer', required)
    .addColumn('captured_at', 'text', required)
    .addColumn('catalog', 'text', required)
    .addPrimaryKeyConstraint('one_catalog_a_version', ['datasource_id', 'version'])
    .execute()
  await tx.schema
    .createTable('exposures')
    .addColumn('datasource_id', 'text', of('datasources.id'))
    .addColumn('version', 'integer', required)
    .addColumn('tables', 'text', required)
    // No foreign key, because the history stays when its author's account is deleted.
    .addColumn('author_id', 'text', required)
    .addColumn('created_at', 'text', required)
    .addPrimaryKeyConstraint('one_exposure_a_version', ['datasource_id', 'version'])
    .execute()
  await tx.schema
    .createTable('access_entries')
    .addColumn('datasource_id', 'text', of('datasources.id'))
    .addColumn('account_id', 'text', of('accounts.id'))
    .addPrimaryKeyConstraint('one_access_entry', ['datasource_id', 'account_id'])
    .execute()
  await tx.schema.createIndex('access_entries_of_account').on('access_entries').column('account_id').execute()
}

async function auditAndJobs(tx: Transaction<Tables>): Promise<void> {
  // No foreign keys, because audit rows stay when the objects that they name are deleted.
  await tx.schema
    .createTable('audit')
    .addColumn('id', 'text', id)
    .addColumn('at', 'text', required)
    .addColumn('team_id', 'text')
    .addColumn('datasource_id', 'text')
    .addColumn('account_id', 'text')
    .addColumn('key_id', 'text')
    .addColumn('via', 'text', required)
    .addColumn('action', 'text', required)
    .addColumn('outcome', 'text', required)
    .addColumn('code', 'text')
    .addColumn('blocked', 'text')
    .addColumn('query', 'text')
    .addColumn('printed', 'text')
    .addColumn('row_count', 'bigint')
    .addColumn('bytes', 'bigint')
    .addColumn('duration_ms', 'double precision')
    .addColumn('times', 'integer', required)
    .execute()
  await tx.schema.createIndex('audit_of_team').on('audit').columns(['team_id', 'at', 'id']).execute()
  await tx.schema.createIndex('audit_by_time').on('audit').column('at').execute()
  await tx.schema
    .createTable('jobs')
    .addColumn('id', 'text', id)
    .addColumn('datasource_id', 'text', of('datasources.id'))
    .addColumn('kind', 'text', required)
    .addColumn('state', 'text', required)
    .addColumn('done', 'integer', required)
    .addColumn('total', 'integer', required)
    .addColumn('result', 'text')
    .addColumn('error', 'text')
    .addColumn('created_at', 'text', required)
    .addColumn('updated_at', 'text', required)
    .execute()
  await tx.schema.createIndex('jobs_of_datasource').on('jobs').column('datasource_id').execute()
}
