import type { Transaction } from 'kysely'
import type { Target } from '../audit/recorded-changes.ts'
import type { DatasourceId } from '../ids.ts'
import type { Tables } from '../store/tables.ts'

/** Returns the audit target of a change to a datasource, with the datasource's name in this transaction. */
export async function targetOf(
  tx: Transaction<Tables>,
  kind: 'datasource' | 'exposure' | 'documentation' | 'access',
  id: DatasourceId,
): Promise<Target> {
  const row = await tx.selectFrom('datasources').select('name').where('id', '=', id).executeTakeFirst()
  return { kind, id, name: row?.name ?? '' }
}
