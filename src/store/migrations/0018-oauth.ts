// Adds the tables of the OAuth provider. Its library defines the columns, and reads and writes the rows.
import type { CreateTableBuilder, Transaction } from 'kysely'
import type { DialectName, Migration } from '../migration.ts'
import type { Tables } from '../tables.ts'

export const oauth: Migration = {
  name: '0018-oauth',
  async up(tx, dialect) {
    await clients(tx, dialect)
    await consents(tx, dialect)
    await tokens(tx, dialect)
    await resources(tx, dialect)
  },
}

const time = (dialect: DialectName) => (dialect === 'postgres' ? 'timestamptz' : 'text')
const boolean = (dialect: DialectName) => (dialect === 'postgres' ? 'boolean' : 'integer')
const json = (dialect: DialectName) => (dialect === 'postgres' ? 'jsonb' : 'text')

function table<T extends string>(tx: Transaction<Tables>, name: T): CreateTableBuilder<T> {
  return tx.schema.createTable(name).addColumn('id', 'text', (column) => column.primaryKey().notNull())
}

/** Clients with a metadata document have no row here. */
async function clients(tx: Transaction<Tables>, dialect: DialectName): Promise<void> {
  await table(tx, 'oauth_clients')
    .addColumn('clientId', 'text', (column) => column.notNull().unique())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('redirectUris', 'text', (column) => column.notNull())
    .addColumn('grantTypes', 'text', (column) => column.notNull())
    .addColumn('tokenEndpointAuthMethod', 'text', (column) => column.notNull())
    .addColumn('createdAt', time(dialect), (column) => column.notNull())
    .execute()
  await tx.schema.createIndex('oauth_clients_by_age').on('oauth_clients').column('createdAt').execute()
}

/** The library needs a row only while it issues a code. Then our code deletes the row. */
async function consents(tx: Transaction<Tables>, dialect: DialectName): Promise<void> {
  await table(tx, 'oauth_consents')
    .addColumn('clientId', 'text', (column) => column.notNull())
    .addColumn('userId', 'text', (column) => column.references('accounts.id').onDelete('cascade'))
    .addColumn('referenceId', 'text')
    .addColumn('resources', 'text')
    .addColumn('requestedUserInfoClaims', 'text')
    .addColumn('scopes', 'text', (column) => column.notNull())
    .addColumn('createdAt', time(dialect))
    .addColumn('updatedAt', time(dialect))
    .execute()
  await tx.schema.createIndex('oauth_consents_of_account').on('oauth_consents').column('userId').execute()
}

async function tokens(tx: Transaction<Tables>, dialect: DialectName): Promise<void> {
  await table(tx, 'oauth_refresh_tokens')
    .addColumn('token', 'text', (column) => column.notNull().unique())
    .addColumn('clientId', 'text', (column) => column.notNull())
    .addColumn('sessionId', 'text', (column) => column.references('sessions.id').onDelete('set null'))
    .addColumn('userId', 'text', (column) => column.notNull().references('accounts.id').onDelete('cascade'))
    .addColumn('referenceId', 'text')
    .addColumn('authorizationCodeId', 'text')
    .addColumn('resources', 'text')
    .addColumn('requestedUserInfoClaims', 'text')
    .addColumn('expiresAt', time(dialect), (column) => column.notNull())
    .addColumn('createdAt', time(dialect), (column) => column.notNull())
    .addColumn('revoked', time(dialect))
    .addColumn('rotatedAt', time(dialect))
    .addColumn('rotationReplayResponse', 'text')
    .addColumn('rotationReplayExpiresAt', time(dialect))
    .addColumn('authTime', time(dialect))
    .addColumn('confirmation', json(dialect))
    .addColumn('scopes', 'text', (column) => column.notNull())
    .execute()
  for (const column of ['sessionId', 'userId', 'referenceId', 'authorizationCodeId'] as const) {
    const name = `oauth_refresh_tokens_by_${column.toLowerCase()}`
    await tx.schema.createIndex(name).on('oauth_refresh_tokens').column(column).execute()
  }
  // Stays empty, because every access token is a JWT. The library reads this table if a code is used twice.
  await table(tx, 'oauth_access_tokens')
    .addColumn('authorizationCodeId', 'text')
    .addColumn('refreshId', 'text')
    .execute()
}

async function resources(tx: Transaction<Tables>, dialect: DialectName): Promise<void> {
  await table(tx, 'oauth_resources')
    .addColumn('identifier', 'text', (column) => column.notNull().unique())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('accessTokenTtl', 'integer')
    .addColumn('refreshTokenTtl', 'integer')
    .addColumn('signingAlgorithm', 'text')
    .addColumn('signingKeyId', 'text')
    .addColumn('allowedScopes', 'text')
    .addColumn('customClaims', json(dialect))
    .addColumn('dpopBoundAccessTokensRequired', boolean(dialect))
    .addColumn('disabled', boolean(dialect))
    .addColumn('createdAt', time(dialect))
    .addColumn('updatedAt', time(dialect))
    .addColumn('policyVersion', 'integer')
    .addColumn('metadata', json(dialect))
    .execute()
}
