// Takes out of what is published the texts that tell values of columns just marked personal: they are seen no more from
// the next request on, and not only from the next publication.
import type { Transaction } from 'kysely'
import type { DatasourceId } from '../ids.ts'
import type { Tables } from '../store/tables.ts'
import { fullName } from './columns.ts'
import { tellsValues } from './draft.ts'
import { readPublished, type PublishedTable } from './shown.ts'

type Published = PublishedTable['statements'][number]

/**
 * Of every publication that is kept. Whoever calls it raises the version of the profiles too (forgetPersonal does), so
 * that descriptions are written anew.
 */
export async function withdrawPersonal(
  tx: Transaction<Tables>,
  id: DatasourceId,
  { schema, table }: { readonly schema: string; readonly table: string },
  columns: readonly string[],
): Promise<void> {
  if (columns.length === 0) return
  const full = columns.map((column) => fullName({ schema, table, column }))
  const [own, others] = [new Set([...columns, ...full]), new Set(full)]
  const rows = tx.selectFrom('publications').select(['version', 'tables']).where('datasource_id', '=', id)
  for (const { version, tables } of await rows.execute()) {
    const before = readPublished(tables)
    const isOwn = (each: PublishedTable) => each.schema === schema && each.table === table
    const after = JSON.stringify(before.map((each) => withoutValues(each, isOwn(each) ? own : others)))
    if (after === JSON.stringify(before)) continue
    await tx
      .updateTable('publications')
      .set({ tables: after })
      .where('datasource_id', '=', id)
      .where('version', '=', version)
      .execute()
  }
}

function withoutValues(table: PublishedTable, personal: ReadonlySet<string>): PublishedTable {
  const stays = (said: Published) => !(tellsValues(said.text) && said.restsOn.some((name) => personal.has(name)))
  const kept = (said: Published | null) => (said !== null && stays(said) ? said : null)
  return {
    ...table,
    summary: kept(table.summary),
    examples: kept(table.examples),
    statements: table.statements.filter(stays),
    columns: Object.fromEntries(Object.entries(table.columns).filter(([, said]) => stays(said))),
  }
}
