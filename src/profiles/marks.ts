// Which columns a person marked as personal or not, as it stands in the drafts of the documentation.
import type { Transaction } from 'kysely'
import { z } from 'zod'
import { byName } from '../contract/by-name.ts'
import type { DatasourceId } from '../ids.ts'
import type { Tables } from '../store/tables.ts'
import type { Marks } from './privacy.ts'

/** Of a draft, only the marks. */
const Draft = z.object({
  columns: byName(z.object({ personal: z.boolean().nullable().optional() })).optional(),
})

/** Of one table. In a transaction, what it reads holds until that ends. */
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

function readMarks(draft: string): Marks {
  const { columns } = Draft.parse(JSON.parse(draft))
  return new Map([...(columns ?? [])].map(([name, { personal }]) => [name, personal ?? null]))
}
