// When a datasource or its exposure, documentation or access list changes, the audit records the datasource's name.
// This file reads that name.
import type { Transaction } from 'kysely'
import type { Target } from '../audit/recorded-changes.ts'
import type { DatasourceId } from '../ids.ts'
import type { Tables } from '../store/tables.ts'

/** Returns the target, with the datasource's name in this transaction. */
export async function targetOf(
  tx: Transaction<Tables>,
  kind: 'datasource' | 'exposure' | 'documentation' | 'access',
  id: DatasourceId,
): Promise<Target> {
  const row = await tx.selectFrom('datasources').select('name').where('id', '=', id).executeTakeFirst()
  return { kind, id, name: row?.name ?? '' }
}
