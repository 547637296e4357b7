// The drafts of the documentation contain which columns people have marked as personal or as not personal.
import type { Kysely, Transaction } from 'kysely'
import { z } from 'zod'
import { byName } from '../contract/name-keyed-objects.ts'
import type { DatasourceId } from '../ids.ts'
import type { Tables } from '../store/tables.ts'
import type { Marks } from './privacy.ts'

const Draft = z.object({
  columns: byName(z.object({ personal: z.boolean().nullable().optional() })).optional(),
})

/** Returns the marks of one table. They cannot change before the transaction ends. */
export async function marksOf(
  tx: Transaction<Tables>,
  datasourceId: DatasourceId,
  at: { readonly schema: string; readonly table: string },
): Promise<Marks> {
  const row = await tx
    .selectFrom('documentation')
    .select('draft')
    .where('datasource_id', '=', datasourceId)
    .where('schema', '=', at.schema)
    .where('table', '=', at.table)
    .executeTakeFirst()
  return row === undefined ? new Map() : readMarks(row.draft)
}

/** Returns the drafts of a datasource that contain marks. Pass each `draft` to readMarks(). */
export async function markedDrafts(
  db: Kysely<Tables>,
  datasourceId: DatasourceId,
): Promise<readonly { readonly schema: string; readonly table: string; readonly draft: string }[]> {
  return await db
    .selectFrom('documentation')
    .select(['schema', 'table', 'draft'])
    .where('datasource_id', '=', datasourceId)
    // Most drafts have no marks.
    .where((eb) => eb.or([eb('draft', 'like', '%"personal":true%'), eb('draft', 'like', '%"personal":false%')]))
    .execute()
}

export function readMarks(draft: string): Marks {
  const { columns } = Draft.parse(JSON.parse(draft))
  return new Map([...(columns ?? [])].map(([name, { personal }]) => [name, personal ?? null]))
}
