// Publishing creates one version with the approved texts of all drafts.
import { changesOf } from '../audit/recorded-changes.ts'
import type { Call } from '../auth/caller.ts'
import { tableKey } from '../drivers/table-key.ts'
import { targetOf } from '../exposure/audited-target.ts'
import { invalidRequest, notFound } from '../errors.ts'
import { inSlices } from '../event-loop-slices.ts'
import type { AccountId, DatasourceId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import { publishedChanges, publishedCounts } from './audited-texts.ts'
import { conflict, draftsOf, raiseVersion, type DocumentationDeps, type DocumentationPlace } from './drafts.ts'
import { isApproved, type Draft, type Said } from './stored-draft.ts'
import { ColumnMentions } from './column-mentions.ts'
import { readPublished, writePublished, type PublishedTable } from './visible-texts.ts'

interface Publishing {
  readonly publishedAt: string | null
  readonly version: number
  /** There was nothing new to publish, so no version was created. */
  readonly nothing?: true
}

/** Publishes every ACCEPTED and CONFIRMED text, if there is a difference. Throws CONFLICT for an old `version`. */
export async function publishDocumentation(
  deps: DocumentationDeps,
  call: Call,
  at: DocumentationPlace,
  request: { readonly version?: number },
): Promise<Publishing> {
  const full = await deps.catalogs.full(at.row)
  const publishedAt = new Date().toISOString()
  return await deps.store.write(async (tx) => {
    const now = await tx
      .selectFrom('datasources')
      .select(['documentation_version', 'published_version', 'published_at'])
      .where('id', '=', at.id)
      .executeTakeFirstOrThrow(() => notFound())
    if (request.version !== undefined && request.version !== now.documentation_version) throw conflict()
    const naming = full === null ? null : new ColumnMentions(full)
    const known = new Map(full?.tables.map((table) => [tableKey(table.schema, table.table), table]))
    const turn = inSlices()
    const tables: PublishedTable[] = []
    for (const each of await draftsOf(tx, at.id)) {
      await turn()
      const own = known.get(tableKey(each.schema, each.table))
      tables.push(...approvedOf(each, (text) => (own === undefined ? [] : (naming?.in(text, own) ?? []))))
    }
    const before = await publishedOf({ db: tx }, { id: at.id, published_version: now.published_version })
    await turn()
    const json = await writePublished(tables)
    if ((await writePublished(before.values())) === json) {
      deps.audit.record(call, { teamId: at.teamId, datasourceId: at.id, outcome: 'ANSWERED' })
      return { publishedAt: now.published_at, version: now.documentation_version, nothing: true }
    }
    const version = await raiseVersion(tx, at.id, request.version)
    const { published_version: published } = await tx
      .updateTable('datasources')
      .set((eb) => ({ published_version: eb('published_version', '+', 1), published_at: publishedAt }))
      .where('id', '=', at.id)
      .returning('published_version')
      .executeTakeFirstOrThrow()
    await turn()
    await tx.deleteFrom('publications').where('datasource_id', '=', at.id).execute()
    await tx
      .insertInto('publications')
      .values({
        datasource_id: at.id,
        version: published,
        tables: json,
        author_id: call.caller.accountId,
        published_at: publishedAt,
      })
      .execute()
    await tx
      .insertInto('publication_history')
      .values({
        datasource_id: at.id,
        version: published,
        author_id: call.caller.accountId,
        published_at: publishedAt,
        tables: tables.length,
        ...publishedCounts([...before.values()], tables),
      })
      .execute()
    await tx
      .deleteFrom('publication_history')
      .where('datasource_id', '=', at.id)
      .where('version', '<=', published - HISTORY_KEPT)
      .execute()
    await turn()
    const versions = changesOf({ published: published - 1 }, { published })
    const changes = { ...versions, ...publishedChanges([...before.values()], tables) }
    const what = { target: await targetOf(tx, 'documentation', at.id), changes }
    await deps.audit.change(tx, call, { teamId: at.teamId, datasourceId: at.id }, what)
    return { publishedAt, version }
  })
}

/** The maximum number of history entries of a datasource. Older entries are deleted. */
const HISTORY_KEPT = 1_000

/** `name` is null if the account was deleted. */
interface PublicationItem {
  readonly version: number
  readonly publishedAt: string
  readonly author: { readonly accountId: AccountId; readonly name: string | null }
  readonly tables: number
  readonly texts: number
  readonly added: number
  readonly changed: number
  readonly removed: number
}

/** Throws INVALID_REQUEST for an invalid cursor. */
export async function listPublications(
  deps: Pick<DocumentationDeps, 'store'>,
  at: Pick<DocumentationPlace, 'id'>,
  { cursor, limit = 20 }: { readonly cursor?: string | undefined; readonly limit?: number | undefined },
): Promise<{ readonly items: readonly PublicationItem[]; readonly nextCursor: string | null }> {
  if (cursor !== undefined && !/^\d{1,9}$/.test(cursor)) throw invalidRequest(['cursor: is not a valid cursor'])
  const rows = await deps.store.db
    .selectFrom('publication_history as history')
    .leftJoin('accounts', 'accounts.id', 'history.author_id')
    .select(['history.version', 'history.author_id', 'history.published_at', 'history.tables', 'history.texts'])
    .select(['history.added', 'history.changed', 'history.removed', 'accounts.name'])
    .where('history.datasource_id', '=', at.id)
    .$if(cursor !== undefined, (query) => query.where('history.version', '<', Number(cursor)))
    .orderBy('history.version', 'desc')
    .limit(limit + 1)
    .execute()
  const items = rows.slice(0, limit).map(({ author_id: accountId, published_at: publishedAt, name, ...counts }) => {
    return { ...counts, publishedAt, author: { accountId, name } }
  })
  const last = items.at(-1)
  return { items, nextCursor: rows.length > limit && last !== undefined ? String(last.version) : null }
}

/** Returns a map by tableKey(). It is empty before the first publication. */
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
  return new Map((await readPublished(tables)).map((table) => [tableKey(table.schema, table.table), table]))
}

/** Returns how often texts were withdrawn from the newest publication (withdraw-texts.ts). */
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

/** An example depends on every column that it names, even if its author did not list that column. */
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
