// Adds the audit chain: each row's position, the chains with their signed ends, and the gaps for removed rows. Also
// adds usage by day. Existing rows belong to no chain.
import { sql, type ColumnDefinitionBuilder, type Transaction } from 'kysely'
import type { Migration } from '../migration.ts'
import type { Tables } from '../tables.ts'

export const auditChain: Migration = {
  name: '0004-audit-chain',
  async up(tx) {
    await rows(tx)
    await chains(tx)
    await usage(tx)
  },
}

const required = (column: ColumnDefinitionBuilder) => column.notNull()

async function rows(tx: Transaction<Tables>): Promise<void> {
  // SQLite adds one column per statement.
  await tx.schema.alterTable('audit').addColumn('client', 'text').execute()
  await tx.schema
    .alterTable('audit')
    .addColumn('redacted', 'integer', (column) => column.notNull().defaultTo(0))
    .execute()
  for (const column of ['chain', 'link'] as const) {
    await tx.schema.alterTable('audit').addColumn(column, 'text').execute()
  }
  await tx.schema.alterTable('audit').addColumn('seq', 'bigint').execute()
  await tx.schema
    .createIndex('audit_in_chain')
    .unique()
    .on('audit')
    .columns(['chain', 'seq'])
    .where('seq', 'is not', null)
    .execute()
  await sql`create index audit_unlinked on audit (chain) where seq is null and chain is not null`.execute(tx)
}

async function chains(tx: Transaction<Tables>): Promise<void> {
  await tx.schema
    .createTable('audit_chains')
    .addColumn('chain', 'text', (column) => column.primaryKey().notNull())
    .addColumn('number', 'bigint', (column) => column.notNull().unique())
    .addColumn('opened_at', 'text', required)
    .addColumn('head_seq', 'bigint', required)
    .addColumn('head_link', 'text', required)
    .addColumn('batch', 'bigint', required)
    .addColumn('signature', 'text', required)
    .execute()
  await tx.schema
    .createTable('audit_gaps')
    .addColumn('chain', 'text', required)
    .addColumn('first_seq', 'bigint', required)
    .addColumn('last_seq', 'bigint', required)
    .addColumn('last_link', 'text', required)
    .addColumn('until', 'text', required)
    .addColumn('signature', 'text', required)
    .addPrimaryKeyConstraint('one_audit_gap', ['chain', 'first_seq'])
    .execute()
}

/** A primary key allows no null, so a column without a value is ''. Like the audit, this table has no foreign keys. */
async function usage(tx: Transaction<Tables>): Promise<void> {
  await tx.schema
    .createTable('usage_days')
    .addColumn('team_id', 'text', required)
    .addColumn('date', 'text', required)
    .addColumn('datasource_id', 'text', required)
    .addColumn('account_id', 'text', required)
    .addColumn('key_id', 'text', required)
    // Each process counts under its own chain, so that processes never lock each other's rows.
    .addColumn('chain', 'text', required)
    .addColumn('queries', 'bigint', required)
    .addColumn('denied', 'bigint', required)
    .addColumn('failed', 'bigint', required)
    .addColumn('row_count', 'bigint', required)
    .addPrimaryKeyConstraint('one_usage_day', ['team_id', 'date', 'datasource_id', 'account_id', 'key_id', 'chain'])
    .execute()
  await sql`
    insert into usage_days
      (team_id, date, datasource_id, account_id, key_id, chain, queries, denied, failed, row_count)
    select team_id, substr(at, 1, 10), coalesce(datasource_id, ''), coalesce(account_id, ''), coalesce(key_id, ''), '',
      sum(times), sum(case when outcome = 'DENIED' then times else 0 end),
      sum(case when outcome = 'FAILED' then times else 0 end), coalesce(sum(row_count), 0)
    from audit where action = 'runQuery' and team_id is not null
    group by team_id, substr(at, 1, 10), coalesce(datasource_id, ''), coalesce(account_id, ''), coalesce(key_id, '')
  `.execute(tx)
}
