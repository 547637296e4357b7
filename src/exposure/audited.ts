// The queries that the audit holds of a datasource, as a replay needs them. Read in pages, never all at once.
import { setImmediate } from 'node:timers/promises'
import type { AuditId, DatasourceId, TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'

export interface AuditedQuery {
  readonly id: AuditId
  /** As the caller wrote it; null where it was redacted or left out. */
  readonly text: string | null
  readonly code: string | null
  /** JSON of what the guard or the database stopped it for. */
  readonly blocked: string | null
}

const PAGE = 500
const DAY_MS = 86_400_000
/** Calls that only ask what a query would do are none. */
const QUERY = 'runQuery'
/** Refused before anybody read a query in it. */
const NO_QUERY = ['INVALID_REQUEST', 'NOT_CONNECTED', 'DATASOURCE_DISABLED'] as const

/** Whose queries, and since when. */
interface Asked {
  readonly id: DatasourceId
  readonly teamId: TeamId
  /** ISO 8601, UTC. */
  readonly since: string
}

/** How many there are. Throws the reason of `signal`. */
export async function countAudited(store: Pick<Store, 'db'>, asked: Asked, signal: AbortSignal): Promise<number> {
  let sum = 0
  for await (const day of days(store, asked)) {
    const { total } = await queries(store, asked, day)
      .select((eb) => eb.fn.countAll<number>().as('total'))
      .executeTakeFirstOrThrow()
    sum += Number(total)
    await setImmediate()
    signal.throwIfAborted()
  }
  return sum
}

/** Page after page, the newest first. Throws the reason of `signal`. */
export async function* auditedQueries(
  store: Pick<Store, 'db'>,
  asked: Asked,
  signal: AbortSignal,
): AsyncIterable<readonly AuditedQuery[]> {
  for await (const day of days(store, asked)) {
    let after: Place | null = null
    do {
      const rows: readonly Row[] = await page(store, asked, day, after)
      yield rows.map(queryOf)
      after = rows.length < PAGE ? null : (rows.at(-1) ?? null)
      await setImmediate()
      signal.throwIfAborted()
    } while (after !== null)
  }
}

interface Place {
  readonly id: AuditId
  readonly at: string
}

/** From the first moment to before the last. */
interface Day {
  readonly from: string
  readonly to: string
}

/** A day at a time, the newest first: the embedded store answers on this thread, which others wait for. */
async function* days(store: Pick<Store, 'db'>, { teamId, since }: Asked): AsyncIterable<Day> {
  const rows = () => store.db.selectFrom('audit').where('team_id', '=', teamId).where('at', '>=', since)
  // One at a time, each is the end of an index.
  const { oldest } = await rows()
    .select((eb) => eb.fn.min('at').as('oldest'))
    .executeTakeFirstOrThrow()
  const { newest } = await rows()
    .select((eb) => eb.fn.max('at').as('newest'))
    .executeTakeFirstOrThrow()
  if (oldest === null || newest === null) return
  for (let to = Date.parse(newest) + 1; to > Date.parse(oldest); to -= DAY_MS) {
    const from = new Date(to - DAY_MS).toISOString()
    yield { from: from < since ? since : from, to: new Date(to).toISOString() }
  }
}

function queries(store: Pick<Store, 'db'>, { id, teamId }: Asked, { from, to }: Day) {
  return store.db
    .selectFrom('audit')
    .where('team_id', '=', teamId)
    .where('datasource_id', '=', id)
    .where('action', '=', QUERY)
    .where('at', '>=', from)
    .where('at', '<', to)
    .where((eb) => eb.or([eb('code', 'is', null), eb('code', 'not in', [...NO_QUERY])]))
}

function page(store: Pick<Store, 'db'>, asked: Asked, day: Day, after: Place | null) {
  const newest = queries(store, asked, day)
  const older =
    after === null
      ? newest
      : newest.where((eb) =>
          eb.or([eb('at', '<', after.at), eb.and([eb('at', '=', after.at), eb('id', '<', after.id)])]),
        )
  return older
    .select(['id', 'at', 'query', 'redacted', 'code', 'blocked'])
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(PAGE)
    .execute()
}

/** One row, whatever call it is of; null where this datasource has no such row. */
export async function auditedQuery(
  store: Pick<Store, 'db'>,
  datasourceId: DatasourceId,
  id: AuditId,
): Promise<AuditedQuery | null> {
  const row = await store.db
    .selectFrom('audit')
    .select(['id', 'query', 'redacted', 'code', 'blocked'])
    .where('id', '=', id)
    .where('datasource_id', '=', datasourceId)
    .executeTakeFirst()
  return row === undefined ? null : queryOf(row)
}

type Row = Awaited<ReturnType<typeof page>>[number]

function queryOf(row: Omit<Row, 'at'>): AuditedQuery {
  const { id, code, blocked } = row
  return { id, code, blocked, text: row.redacted === 0 ? row.query : null }
}
