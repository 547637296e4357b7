// Each table of a datasource has one draft of its documentation. Descriptions show only published texts.
import { setImmediate } from 'node:timers/promises'
import type { Transaction } from 'kysely'
import type { Audit } from '../audit/audit.ts'
import { changesOf, pathName } from '../audit/recorded-changes.ts'
import type { Call } from '../auth/caller.ts'
import type { Catalog, CatalogTable } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import { AppError, invalidRequest, notFound } from '../errors.ts'
import { inSlices } from '../event-loop-slices.ts'
import type { Catalogs } from '../exposure/catalog-cache.ts'
import type { Versions } from '../exposure/catalog-counts.ts'
import type { DatasourceId, TeamId } from '../ids.ts'
import { forgetPersonal } from '../profiles/stored-profiles.ts'
import type { Store } from '../store/open.ts'
import type { KnowledgeVersions } from '../store/profile-and-documentation-tables.ts'
import type { Tables } from '../store/tables.ts'
import type { Selectable } from 'kysely'
import { draftChanges } from './audited-texts.ts'
import { Others, RestingPlace } from './text-dependencies.ts'
import {
  EMPTY,
  isEmpty,
  isStale,
  personalOf,
  readDraft,
  textsOf,
  writeDraft,
  type Draft,
  type Said,
} from './stored-draft.ts'
import { readDraftChange, type DraftInput } from './merge-draft-edit.ts'
import { Visibility } from './visible-texts.ts'
import { withdrawPersonal } from './withdraw-texts.ts'

export interface DocumentationDeps {
  readonly store: Store
  readonly audit: Audit
  readonly catalogs: Catalogs
}

export interface DocumentationPlace {
  readonly id: DatasourceId
  readonly teamId: TeamId
  readonly row: Versions & Selectable<KnowledgeVersions> & { readonly status: string }
}

interface TextView extends Pick<Said, 'text' | 'origin' | 'status' | 'restsOn'> {
  readonly stale: boolean
}

export interface TableView {
  readonly schema: string
  readonly table: string
  readonly summary: TextView | null
  readonly examples: TextView | null
  readonly statements: readonly TextView[]
  readonly columns: ReadonlyMap<string, Partial<TextView> & { readonly personal: boolean | null }>
  /** The database no longer has this table. */
  readonly gone?: true
  /** Only in the answer to a PUT. */
  readonly warnings?: readonly string[]
}

/** Returns the drafts in the order of the catalog. Tables that the database no longer has come last. */
export async function getDocumentation(
  deps: Pick<DocumentationDeps, 'store' | 'catalogs'>,
  at: DocumentationPlace,
): Promise<{
  readonly tables: readonly TableView[]
  readonly version: number
  readonly publishedAt: string | null
}> {
  const { now, drafts } = await deps.store.db.transaction().execute(async (tx) => ({
    now: await versionsNow(tx, at.id),
    drafts: await draftsOf(tx, at.id),
  }))
  const catalog = await deps.catalogs.full(at.row)
  const others = new Others(catalog)
  const known = new Map(catalog?.tables.map((table, n) => [tableKey(table.schema, table.table), { table, n }]))
  const turn = inSlices()
  const tables: TableView[] = []
  for (const { schema, table, draft } of drafts) {
    await turn()
    const found = known.get(tableKey(schema, table))?.table ?? null
    tables.push(viewOf({ schema, table }, draft, found, new RestingPlace(found, others)))
  }
  const order = (view: TableView) => known.get(tableKey(view.schema, view.table))?.n ?? known.size
  tables.sort((a, b) => order(a) - order(b))
  await setImmediate()
  return { tables, version: now.documentation_version, publishedAt: now.published_at }
}

/**
 * Throws NOT_FOUND if neither the database nor the documentation has the table, INVALID_REQUEST with `details` for
 * unknown columns, and CONFLICT if `version` is given but is not the current version.
 */
export async function putDocumentation(
  deps: DocumentationDeps,
  call: Call,
  at: DocumentationPlace,
  name: { readonly schema: string; readonly table: string },
  request: DraftInput & { readonly version?: number },
): Promise<TableView & { readonly version: number }> {
  const catalog = await deps.catalogs.full(at.row)
  const table = findTable(catalog?.tables, name.schema, name.table)
  const place = new RestingPlace(table, new Others(catalog))
  const { draft, version } = await deps.store.write(async (tx) => {
    const now = await raiseVersion(tx, at.id, request.version)
    const before = await draftOf(tx, at.id, name)
    if (table === null && before === null) throw notFound()
    const { draft, problems } = readDraftChange(request, before, place)
    if (problems.length > 0) throw invalidRequest(problems, 'The documentation cannot be saved in this form.')
    await saveDraft(tx, at.id, name, draft, call.caller.accountId)
    const uncleared = unclearedOf(before, draft)
    await forgetPersonal(tx, at.id, name, [...personalOf(draft), ...uncleared])
    const marked = personalOf(draft).filter((column) => before?.columns.get(column)?.personal !== true)
    await withdrawPersonal(tx, at.id, name, [...marked, ...uncleared])
    const target = { kind: 'documentation', id: at.id, name: pathName(name.schema, name.table) } as const
    const changes = { ...changesOf({ version: now - 1 }, { version: now }), ...draftChanges(before ?? EMPTY, draft) }
    await deps.audit.change(tx, call, { teamId: at.teamId, datasourceId: at.id }, { target, changes })
    return { draft: (await draftOf(tx, at.id, name)) ?? EMPTY, version: now }
  })
  const warnings = catalog === null ? [] : await warningsOf(deps, at, name, draft, catalog)
  return { ...viewOf(name, draft, table, place), version, warnings }
}

/** Throws NOT_FOUND if neither the database nor the documentation has the table. */
export async function requireDocumented(
  deps: Pick<DocumentationDeps, 'store' | 'catalogs'>,
  at: DocumentationPlace,
  name: { readonly schema: string; readonly table: string },
): Promise<void> {
  const catalog = await deps.catalogs.full(at.row)
  if (findTable(catalog?.tables, name.schema, name.table) !== null) return
  if ((await draftOf(deps.store.db, at.id, name)) === null) throw notFound()
}

async function warningsOf(
  deps: DocumentationDeps,
  at: DocumentationPlace,
  name: { readonly schema: string; readonly table: string },
  draft: Draft,
  full: Catalog,
): Promise<readonly string[]> {
  const exposed = await deps.catalogs.exposed(at.row)
  const sight = exposed === null ? null : new Visibility(exposed, full).of(name)
  return textsOf(draft)
    .filter((said) => said.status !== 'REJECTED' && sight?.maySee(said) !== true)
    .map((said) => `Not shown, because it depends on or names something that is not exposed: “${shortened(said.text)}”`)
}

function shortened(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}

export async function raiseVersion(
  tx: Transaction<Tables>,
  id: DatasourceId,
  expected: number | undefined,
): Promise<number> {
  const row = await tx
    .updateTable('datasources')
    .set((eb) => ({ documentation_version: eb('documentation_version', '+', 1) }))
    .where('id', '=', id)
    .returning('documentation_version')
    .executeTakeFirstOrThrow(() => notFound())
  if (expected !== undefined && row.documentation_version !== expected + 1) throw conflict()
  return row.documentation_version
}

/** Yields to the event loop. */
export async function draftsOf(
  db: Pick<Transaction<Tables>, 'selectFrom'>,
  id: DatasourceId,
): Promise<readonly { readonly schema: string; readonly table: string; readonly draft: Draft }[]> {
  const rows = await db
    .selectFrom('documentation')
    .select(['schema', 'table', 'draft'])
    .where('datasource_id', '=', id)
    .orderBy('schema')
    .orderBy('table')
    .execute()
  const turn = inSlices()
  const drafts: { readonly schema: string; readonly table: string; readonly draft: Draft }[] = []
  for (const { schema, table, draft } of rows) {
    await turn()
    drafts.push({ schema, table, draft: readDraft(draft) })
  }
  return drafts
}

export async function draftOf(
  tx: Pick<Transaction<Tables>, 'selectFrom'>,
  id: DatasourceId,
  name: { readonly schema: string; readonly table: string },
): Promise<Draft | null> {
  const row = await tx
    .selectFrom('documentation')
    .select('draft')
    .where('datasource_id', '=', id)
    .where('schema', '=', name.schema)
    .where('table', '=', name.table)
    .executeTakeFirst()
  return row === undefined ? null : readDraft(row.draft)
}

/** Deletes the stored draft if `draft` is empty. `author` is null for a generated draft. */
export async function saveDraft(
  tx: Transaction<Tables>,
  id: DatasourceId,
  { schema, table }: { readonly schema: string; readonly table: string },
  draft: Draft,
  author: Call['caller']['accountId'] | null,
): Promise<void> {
  const here = { datasource_id: id, schema, table }
  if (isEmpty(draft)) {
    await tx
      .deleteFrom('documentation')
      .where('datasource_id', '=', id)
      .where('schema', '=', schema)
      .where('table', '=', table)
      .execute()
    return
  }
  const set = { draft: writeDraft(draft), updated_at: new Date().toISOString(), author_id: author }
  await tx
    .insertInto('documentation')
    .values({ ...here, ...set })
    .onConflict((oc) => oc.columns(['datasource_id', 'schema', 'table']).doUpdateSet(set))
    .execute()
}

function findTable(tables: readonly CatalogTable[] | undefined, schema: string, table: string): CatalogTable | null {
  return tables?.find((each) => each.schema === schema && each.table === table) ?? null
}

export function conflict(): AppError {
  return new AppError(
    'CONFLICT',
    'Another version of the documentation was saved in the meantime. Read the documentation again, then save again.',
  )
}

async function versionsNow(tx: Transaction<Tables>, id: DatasourceId) {
  return await tx
    .selectFrom('datasources')
    .select(['documentation_version', 'published_at'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow(() => notFound())
}

function viewOf(
  name: { readonly schema: string; readonly table: string },
  draft: Draft,
  table: CatalogTable | null,
  place: RestingPlace,
): TableView {
  const view = (said: Said): TextView => {
    const { text, origin, status, restsOn } = said
    return { text, origin, status, restsOn, stale: isStale(said, place) }
  }
  return {
    schema: name.schema,
    table: name.table,
    summary: draft.summary === null ? null : view(draft.summary),
    examples: draft.examples === null ? null : view(draft.examples),
    statements: draft.statements.map(view),
    columns: new Map(
      [...draft.columns].map(([column, { said, personal }]) => [
        column,
        { ...(said !== null && view(said)), personal },
      ]),
    ),
    ...(table === null && { gone: true }),
  }
}

/** Returns the columns that lost the mark “not personal”. Their values stay hidden until the next profile. */
function unclearedOf(before: Draft | null, draft: Draft): readonly string[] {
  return [...(before?.columns ?? [])].flatMap(([name, { personal }]) =>
    personal === false && (draft.columns.get(name)?.personal ?? null) === null ? [name] : [],
  )
}
