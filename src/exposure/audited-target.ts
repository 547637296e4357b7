// What a change to a datasource, or to something of it, was made to, as the audit keeps it: by the name the datasource has.
import type { Transaction } from 'kysely'
import type { Target } from '../audit/changes.ts'
import type { DatasourceId } from '../ids.ts'
import type { Tables } from '../store/tables.ts'

/** As it stands in this transaction. */
export async function targetOf(
  tx: Transaction<Tables>,
  kind: 'datasource' | 'exposure' | 'documentation' | 'access',
  id: DatasourceId,
): Promise<Target> {
  const row = await tx.selectFrom('datasources').select('name').where('id', '=', id).executeTakeFirst()
  return { kind, id, name: row?.name ?? '' }
}
