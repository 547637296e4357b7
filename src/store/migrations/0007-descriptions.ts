// Stores rendered descriptions. When something in a description changes, a version in `datasources` increases, and a
// trigger deletes the stored text in the same transaction. Also adds revisions, so that profiles and publications can
// be cached.
import { sql, type ColumnDefinitionBuilder } from 'kysely'
import type { Migration } from '../migration.ts'

export const descriptions: Migration = {
  name: '0007-descriptions',
  async up(tx, dialect) {
    await tx.schema
      .createTable('descriptions')
      .addColumn('datasource_id', 'text', (column) => required(column).references('datasources.id').onDelete('cascade'))
      .addColumn('part', 'text', required)
      .addColumn('versions', 'text', required)
      .addColumn('etag', 'text', required)
      .addColumn('bytes', 'integer', required)
      .addColumn('packed', dialect === 'sqlite' ? 'blob' : 'bytea', required)
      .addPrimaryKeyConstraint('one_description_a_part', ['datasource_id', 'part'])
      .execute()
    for (const table of ['profiles', 'publications']) {
      await tx.schema
        .alterTable(table)
        .addColumn('revision', 'integer', (column) => required(column).defaultTo(0))
        .execute()
    }
    const changed = sql.join(
      VERSIONS.map((name) => sql`old.${sql.ref(name)} <> new.${sql.ref(name)}`),
      sql` or `,
    )
    if (dialect === 'sqlite') {
      await sql`
        create trigger description_outdated after update on datasources when ${changed}
        begin delete from descriptions where datasource_id = new.id; end`.execute(tx)
      return
    }
    await sql`
      create function forget_descriptions() returns trigger language plpgsql as $$
      begin delete from descriptions where datasource_id = new.id; return null; end $$`.execute(tx)
    await sql`
      create trigger description_outdated after update on datasources for each row when (${changed})
      execute function forget_descriptions()`.execute(tx)
  },
}

/** A change of one of these columns makes a stored description outdated. */
const VERSIONS = ['catalog_version', 'exposure_version', 'profile_version', 'published_version', 'name'] as const

const required = (column: ColumnDefinitionBuilder) => column.notNull()
