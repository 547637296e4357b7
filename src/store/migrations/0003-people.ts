// Adds second factors, used codes, and the time when a key's owner was warned that the key will expire.
import type { DialectName, Migration } from '../migration.ts'

export const people: Migration = {
  name: '0003-people',
  async up(tx, dialect) {
    const boolean = dialect === 'postgres' ? 'boolean' : 'integer'
    await tx.schema.alterTable('accounts').addColumn('twoFactorEnabled', boolean).execute()
    await tx.schema
      .createTable('second_factors')
      .addColumn('id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('userId', 'text', (column) => column.notNull().unique().references('accounts.id').onDelete('cascade'))
      .addColumn('secret', 'text', (column) => column.notNull())
      .addColumn('backupCodes', 'text', (column) => column.notNull())
      .addColumn('verified', boolean)
      .addColumn('failedVerificationCount', 'integer')
      .addColumn('lockedUntil', time(dialect))
      .execute()
    await tx.schema
      .createTable('used_codes')
      .addColumn('account_id', 'text', (column) => column.notNull().references('accounts.id').onDelete('cascade'))
      .addColumn('code_hash', 'text', (column) => column.notNull())
      .addColumn('until', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('one_use_of_a_code', ['account_id', 'code_hash'])
      .execute()
    await tx.schema.alterTable('api_keys').addColumn('warned_at', 'text').execute()
  },
}

const time = (dialect: DialectName) => (dialect === 'postgres' ? 'timestamptz' : 'text')
