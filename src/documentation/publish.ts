// Publishes the approved texts of a draft as one complete version. The exposure at read time decides what a description
// shows of it (visible-texts.ts).
import { changesOf } from '../audit/changes.ts'
import type { Call } from '../auth/caller.ts'
import { jsonOf } from '../contract/by-name.ts'
import { tableKey } from '../drivers/table-key.ts'
import { targetOf } from '../exposure/audited-target.ts'
import type { DatasourceId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { publishedChanges } from './audited-texts.ts'
import { draftsOf, findTable, raiseVersion, type DocumentationDeps, type DocumentationPlace } from './documentation.ts'
import { isApproved, type Draft, type Said } from './draft.ts'
import { ColumnMentions } from './column-mentions.ts'
import { readPublished, type PublishedTable } from './visible-texts.ts'

/**
 * Publishes every ACCEPTED and CONFIRMED text. Throws CONFLICT if another version was saved since the caller read it.
 */
export async function publishDocumentation(
  deps: DocumentationDeps,
  call: Call,
  at: DocumentationPlace,
  request: { readonly version?: number },
): Promise<{ readonly publishedAt: string; readonly version: number }> {
  const full = await deps.catalogs.full(at.row)
  const publishedAt = new Date().toISOString()
  return await deps.store.write(async (tx) => {
    const version = await raiseVersion(tx, at.id, request.version)
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

/** The last publication, by tableKey; empty before the first. */
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

/** How often texts were withdrawn from the newest publication (withdraw.ts). */
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

/** Skips a table without approved texts. Examples depend on every column they name, whether listed or not. */
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
