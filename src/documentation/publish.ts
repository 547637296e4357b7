// Draft to published: what people accepted or confirmed, as one version that stands whole. What a description then
// carries of it depends on the exposure of the moment (shown.ts).
import { changesOf } from '../audit/changes.ts'
import type { Call } from '../auth/caller.ts'
import { jsonOf } from '../contract/by-name.ts'
import { tableKey } from '../drivers/table-key.ts'
import { targetOf } from '../exposure/audited-target.ts'
import type { DatasourceId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { publishedChanges } from './audited-texts.ts'
import { draftsOf, findTable, raised, type DocumentationDeps, type DocumentationPlace } from './documentation.ts'
import { isApproved, type Draft, type Said } from './draft.ts'
import { ColumnMentions } from './column-mentions.ts'
import { readPublished, type PublishedTable } from './visible-texts.ts'

/** Publishes every ACCEPTED and CONFIRMED text. Throws CONFLICT where another version than the one read stands. */
export async function publishDocumentation(
  deps: DocumentationDeps,
  call: Call,
  at: DocumentationPlace,
  asked: { readonly version?: number },
): Promise<{ readonly publishedAt: string; readonly version: number }> {
  const full = await deps.catalogs.full(at.row)
  const publishedAt = new Date().toISOString()
  return await deps.store.write(async (tx) => {
    const version = await raised(tx, at.id, asked.version)
    const naming = full === null ? null : new ColumnMentions(full)
    const tables = (await draftsOf(tx, at.id)).flatMap((each) => {
      const own = findTable(full?.tables, each.schema, each.table)
      return approvedOf(each, (text) => (own === null ? [] : (naming?.in(text, own) ?? [])))
    })
    const { published_version: published } = await tx
      .updateTable('datasources')
      .set((eb) => ({ published_version: eb('published_version', '+', 1), published_at: publishedAt }))
      .where('id', '=', at.id)
      .returning('published_version')
      .executeTakeFirstOrThrow()
    const before = await publishedOf({ db: tx }, { id: at.id, published_version: published - 1 })
    await tx.deleteFrom('publications').where('datasource_id', '=', at.id).execute()
    await tx
      .insertInto('publications')
      .values({
        datasource_id: at.id,
        version: published,
        tables: jsonOf(tables),
        author_id: call.caller.accountId,
        published_at: publishedAt,
      })
      .execute()
    const versions = changesOf({ published: published - 1 }, { published })
    const changes = { ...versions, ...publishedChanges([...before.values()], tables) }
    const what = { target: await targetOf(tx, 'documentation', at.id), changes }
    await deps.audit.change(tx, call, { teamId: at.teamId, datasourceId: at.id }, what)
    return { publishedAt, version }
  })
}

/** What was published last, by tableKey; empty before the first time. */
export async function publishedOf(
  store: Pick<Store, 'db'>,
  at: { readonly id: DatasourceId; readonly published_version: number },
): Promise<ReadonlyMap<string, PublishedTable>> {
  if (at.published_version === 0) return new Map()
  const { tables } = await store.db
    .selectFrom('publications')
    .select('tables')
    .where('datasource_id', '=', at.id)
    .where('version', '=', at.published_version)
    .executeTakeFirstOrThrow()
  return new Map(readPublished(tables).map((table) => [tableKey(table.schema, table.table), table]))
}

/** How often texts were taken out of the newest publication (withdraw.ts). */
export async function publishedRevision(
  store: Pick<Store, 'db'>,
  at: { readonly id: DatasourceId; readonly published_version: number },
): Promise<number> {
  const row = await store.db
    .selectFrom('publications')
    .select('revision')
    .where('datasource_id', '=', at.id)
    .where('version', '=', at.published_version)
    .executeTakeFirst()
  return row?.revision ?? 0
}

/** A table of which nothing was approved is none. Examples rest on whatever they name, whether it was said or not. */
function approvedOf(
  { schema, table, draft }: { readonly schema: string; readonly table: string; readonly draft: Draft },
  namedIn: (text: string) => readonly string[],
): PublishedTable[] {
  const approved = (said: Said | null) =>
    said !== null && isApproved(said)
      ? { text: said.text, origin: said.origin, restsOn: said.restsOn, tells: said.tells }
      : null
  const summary = approved(draft.summary)
  const said = approved(draft.examples)
  const examples = said && { ...said, restsOn: [...new Set([...said.restsOn, ...namedIn(said.text)])] }
  const statements = draft.statements.map(approved).filter((text) => text !== null)
  const columns = new Map(
    [...draft.columns].flatMap(([name, { said }]) => {
      const text = approved(said)
      return text === null ? [] : [[name, text] as const]
    }),
  )
  const nothing = summary === null && examples === null && statements.length === 0 && columns.size === 0
  return nothing ? [] : [{ schema, table, summary, examples, statements, columns }]
}
