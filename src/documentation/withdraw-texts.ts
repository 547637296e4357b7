// When a column is hidden or marked as personal, the same transaction deletes the generated texts that depend on it
// from the drafts and the publication, even if a person accepted them. Texts that people wrote stay, but are not shown
// while their columns are hidden (visible-texts.ts).
import type { ExpressionBuilder, Transaction } from 'kysely'
import type { Catalog } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import type { HiddenNow } from '../exposure/exposure.ts'
import { inSlices } from '../event-loop-slices.ts'
import type { DatasourceId } from '../ids.ts'
import type { Tables } from '../store/tables.ts'
import { fullName, Others, RestingPlace } from './text-dependencies.ts'
import { isEmpty, readDraft, without, writeDraft, type Said } from './stored-draft.ts'
import { readPublished, withoutPublished, writePublished, type PublishedTable } from './visible-texts.ts'

interface TableName {
  readonly schema: string
  readonly table: string
}

type Generated = Pick<Said, 'origin' | 'restsOn' | 'tells'>
const DRAFTS_AT_ONCE = 50

type IsWithdrawn = (at: TableName, said: Generated) => boolean

/** Returns true if a draft changed. Then the caller must increase the documentation's version. */
async function withdraw(tx: Transaction<Tables>, id: DatasourceId, isWithdrawn: IsWithdrawn): Promise<boolean> {
  const withdrawal = new Withdrawal(isWithdrawn)
  let changed = false
  // SQLite answers synchronously, so let other requests run.
  const pause = inSlices()
  for await (const { schema, table, draft: text } of storedDrafts(tx, id)) {
    await pause()
    if (!text.includes('"GENERATED"')) continue
    const before = withdrawal.count
    const draft = without(readDraft(text), withdrawal.from({ schema, table }))
    if (withdrawal.count === before) continue
    changed = true
    await (isEmpty(draft)
      ? tx
          .deleteFrom('documentation')
          .where(isOf(id, schema, table))
          .execute()
      : tx
          .updateTable('documentation')
          .set({ draft: writeDraft(draft) })
          .where(isOf(id, schema, table))
          .execute())
  }
  await withdrawPublished(tx, id, withdrawal)
  return changed
}

/** Reads a few drafts at a time, because all drafts of a datasource may have many megabytes. */
async function* storedDrafts(tx: Transaction<Tables>, id: DatasourceId) {
  const ofDatasource = tx
    .selectFrom('documentation')
    .select(['schema', 'table', 'draft'])
    .where('datasource_id', '=', id)
    .orderBy('schema')
    .orderBy('table')
    .limit(DRAFTS_AT_ONCE)
  let rows = await ofDatasource.execute()
  for (;;) {
    yield* rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < DRAFTS_AT_ONCE) return
    rows = await ofDatasource
      .where((eb) =>
        eb.or([eb('schema', '>', last.schema), eb.and([eb('schema', '=', last.schema), eb('table', '>', last.table)])]),
      )
      .execute()
  }
}

/** Counts the deleted texts. An unchanged count means that nothing changed, so drafts need not be compared. */
class Withdrawal {
  count = 0
  readonly #isWithdrawn: IsWithdrawn

  constructor(isWithdrawn: IsWithdrawn) {
    this.#isWithdrawn = isWithdrawn
  }

  from(at: TableName): (said: Generated) => boolean {
    return (said) => {
      const isGone = said.origin === 'GENERATED' && this.#isWithdrawn(at, said)
      if (isGone) this.count++
      return isGone
    }
  }
}

function isOf(id: DatasourceId, schema: string, table: string) {
  return (eb: ExpressionBuilder<Tables, 'documentation'>) => eb.and({ datasource_id: id, schema, table })
}

/** Keeps the version and the author of the publication. */
async function withdrawPublished(tx: Transaction<Tables>, id: DatasourceId, withdrawal: Withdrawal): Promise<void> {
  const published = await tx
    .selectFrom('publications')
    .select('tables')
    .where('datasource_id', '=', id)
    .executeTakeFirst()
  if (published === undefined) return
  const before = withdrawal.count
  const after: PublishedTable[] = []
  const pause = inSlices()
  for (const each of await readPublished(published.tables)) {
    await pause()
    after.push(withoutPublished(each, withdrawal.from(each)))
  }
  if (withdrawal.count === before) return
  const tables = await writePublished(after)
  await tx
    .updateTable('publications')
    .set((eb) => ({ tables, revision: eb('revision', '+', 1) }))
    .where('datasource_id', '=', id)
    .execute()
}

/**
 * Deletes generated texts that may contain values of `columns`. The caller must then increase the versions of the
 * documentation and the profiles.
 */
export async function withdrawPersonal(
  tx: Transaction<Tables>,
  id: DatasourceId,
  { schema, table }: TableName,
  columns: readonly string[],
): Promise<void> {
  if (columns.length === 0) return
  const full = new Set(columns.map((column) => fullName({ schema, table, column })))
  const own = new Set(columns)
  await withdraw(tx, id, (at, { restsOn, tells }) => {
    if (!tells) return false
    const isOwn = at.schema === schema && at.table === table
    // A text that lists no column may contain values of any column of its table.
    return restsOn.some((name) => full.has(name) || (isOwn && own.has(name))) || (isOwn && restsOn.length === 0)
  })
}

/** Deletes generated texts about objects that are no longer exposed. */
export async function withdrawHidden(tx: Transaction<Tables>, id: DatasourceId, now: HiddenNow): Promise<void> {
  if (!(await withdraw(tx, id, isHiddenText(now)))) return
  await tx
    .updateTable('datasources')
    .set((eb) => ({ documentation_version: eb('documentation_version', '+', 1) }))
    .where('id', '=', id)
    .execute()
}

/**
 * Selects texts about a hidden table or column, and texts about a shrunk table that list no column. If the database
 * lost a column that the exposure still names, its texts are stale, but not hidden.
 */
function isHiddenText({ full, exposed, named, shrunk }: HiddenNow): IsWithdrawn {
  const [all, shown] = [keyed(full), keyed(exposed)]
  const [known, visible] = [new Others(full), new Others(exposed)]
  let names: ReadonlySet<string> | undefined
  // Build the set only when it is needed: most exposures do not need it, and it may have tens of thousands of names.
  const isKept = (name: string) =>
    (names ??= new Set(named.flatMap((at) => at.columns.map((column) => fullName({ ...at, column }))))).has(name)
  const places = new Map<string, (name: string) => boolean>()
  const isShownIn = (at: TableName): ((name: string) => boolean) => {
    const key = tableKey(at.schema, at.table)
    const own = new RestingPlace(all.get(key) ?? null, known)
    const seen = new RestingPlace(shown.get(key) ?? null, visible)
    const isShown = (name: string) => {
      if (own.isOwn(name)) return seen.isOwn(name)
      if (own.meanings(name) > 0) return seen.meanings(name) === own.meanings(name)
      return isKept(name) || isKept(fullName({ ...at, column: name }))
    }
    places.set(key, isShown)
    return isShown
  }
  const tables = new Set(named.map((each) => tableKey(each.schema, each.table)))
  return (at, { restsOn, tells }) => {
    const key = tableKey(at.schema, at.table)
    if (!tables.has(key)) return true
    const isShown = places.get(key) ?? isShownIn(at)
    return !restsOn.every(isShown) || (tells && restsOn.length === 0 && shrunk.has(key))
  }
}

function keyed({ tables }: Pick<Catalog, 'tables'>) {
  return new Map(tables.map((each) => [tableKey(each.schema, each.table), each]))
}
