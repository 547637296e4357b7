// Takes generated texts out of the store, drafts and what is published, in the transaction that hides the columns they rest
// on or marks them as personal: what was generated from a column goes with it, whoever accepted it. What people wrote is
// never touched here; while its columns are hidden it is not shown (shown.ts).
import type { ExpressionBuilder, Transaction } from 'kysely'
import { jsonOf } from '../contract/by-name.ts'
import type { Catalog } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import type { HiddenNow } from '../exposure/exposure.ts'
import type { DatasourceId } from '../ids.ts'
import type { Tables } from '../store/tables.ts'
import { fullName, Others, RestingPlace } from './columns.ts'
import { isEmpty, readDraft, without, writeDraft, type Said } from './draft.ts'
import { readPublished, withoutPublished } from './visible-texts.ts'

interface TableName {
  readonly schema: string
  readonly table: string
}

type Generated = Pick<Said, 'origin' | 'restsOn' | 'tells'>
/** Whether a generated text about a table goes. */
type Goes = (at: TableName, said: Generated) => boolean

/** Whoever calls it raises the version of the documentation where a draft changed: true. */
async function withdraw(tx: Transaction<Tables>, id: DatasourceId, goes: Goes): Promise<boolean> {
  const taking = new Taking(goes)
  const drafts = await tx
    .selectFrom('documentation')
    .select(['schema', 'table', 'draft'])
    .where('datasource_id', '=', id)
    // Of what people wrote nothing goes.
    .where('draft', 'like', '%"GENERATED"%')
    .execute()
  let changed = false
  for (const { schema, table, draft: text } of drafts) {
    const before = taking.count
    const draft = without(readDraft(text), taking.from({ schema, table }))
    if (taking.count === before) continue
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
  await withdrawPublished(tx, id, taking)
  return changed
}

/** Counts what it takes, so that what nothing is taken from need not be written to be compared. */
class Taking {
  count = 0
  readonly #goes: Goes

  constructor(goes: Goes) {
    this.#goes = goes
  }

  from(at: TableName): (said: Generated) => boolean {
    return (said) => {
      const isGone = said.origin === 'GENERATED' && this.#goes(at, said)
      if (isGone) this.count++
      return isGone
    }
  }
}

function isOf(id: DatasourceId, schema: string, table: string) {
  return (eb: ExpressionBuilder<Tables, 'documentation'>) => eb.and({ datasource_id: id, schema, table })
}

/** From what is published, which keeps its number and its author. */
async function withdrawPublished(tx: Transaction<Tables>, id: DatasourceId, taking: Taking): Promise<void> {
  const published = await tx
    .selectFrom('publications')
    .select('tables')
    .where('datasource_id', '=', id)
    .executeTakeFirst()
  if (published === undefined) return
  const before = taking.count
  const after = readPublished(published.tables).map((each) => withoutPublished(each, taking.from(each)))
  if (taking.count === before) return
  await tx
    .updateTable('publications')
    .set((eb) => ({ tables: jsonOf(after), revision: eb('revision', '+', 1) }))
    .where('datasource_id', '=', id)
    .execute()
}

/**
 * What may tell values of columns of one table that are a person's from now on. The caller raises the versions of the
 * documentation and of the profiles, so that descriptions are written anew.
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
    // One that says of no column what it rests on may tell of any.
    return restsOn.some((name) => full.has(name) || (isOwn && own.has(name))) || (isOwn && restsOn.length === 0)
  })
}

/** What rests on columns that are shown no more. */
export async function withdrawHidden(tx: Transaction<Tables>, id: DatasourceId, now: HiddenNow): Promise<void> {
  if (!(await withdraw(tx, id, hiddenGoes(now)))) return
  await tx
    .updateTable('datasources')
    .set((eb) => ({ documentation_version: eb('documentation_version', '+', 1) }))
    .where('id', '=', id)
    .execute()
}

/** A column that went from the database and is still named in the exposure is not hidden: texts on it are stale. */
function hiddenGoes({ full, exposed, named, shrunk }: HiddenNow): Goes {
  const [all, shown] = [keyed(full), keyed(exposed)]
  const [known, visible] = [new Others(full), new Others(exposed)]
  let names: ReadonlySet<string> | undefined
  // Built for the first text that needs it. Most exposures have none, and there may be tens of thousands of names.
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
