// Which columns a person marked as personal or not, as it stands in the drafts of the documentation.
import type { Kysely } from 'kysely'
import { z } from 'zod'
import { tableKey } from '../drivers/table-key.ts'
import type { DatasourceId } from '../ids.ts'
import type { Tables } from '../store/tables.ts'
import type { Marks } from './privacy.ts'

/** Of a draft, only the marks. */
const Draft = z.object({
  columns: z.record(z.string(), z.object({ personal: z.boolean().nullable().optional() })).optional(),
})

/** By tableKey. `db` may be a transaction: what it reads then holds until it ends. */
export async function marksOf(db: Kysely<Tables>, datasourceId: DatasourceId): Promise<ReadonlyMap<string, Marks>> {
  const rows = await db
    .selectFrom('documentation')
    .select(['schema', 'table', 'draft'])
    .where('datasource_id', '=', datasourceId)
    .execute()
  return new Map(rows.map((row) => [tableKey(row.schema, row.table), readMarks(row.draft)]))
}

function readMarks(draft: string): Marks {
  const { columns } = Draft.parse(JSON.parse(draft))
  return new Map(Object.entries(columns ?? {}).map(([name, { personal }]) => [name, personal ?? null]))
}
