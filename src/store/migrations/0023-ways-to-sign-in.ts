// Adds passkeys, and the name of a person's account at a sign-in provider.
import type { Migration } from '../migration.ts'

export const waysToSignIn: Migration = {
  name: '0023-ways-to-sign-in',
  async up(tx) {
    await tx.schema
      .createTable('passkeys')
      .addColumn('id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id').onDelete('cascade'))
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('credential_id', 'text', (column) => column.notNull().unique())
      .addColumn('public_key', 'text', (column) => column.notNull())
      .addColumn('counter', 'double precision', (column) => column.notNull())
      .addColumn('transports', 'text', (column) => column.notNull())
      .addColumn('synced', 'integer', (column) => column.notNull())
      .addColumn('created_at', 'text', (column) => column.notNull())
      .addColumn('last_used_at', 'text')
      .execute()
    await tx.schema.createIndex('passkeys_of_account').on('passkeys').column('account_id').execute()
    await tx.schema.alterTable('sign_in_methods').addColumn('label', 'text').execute()
  },
}
