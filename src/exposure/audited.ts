// The queries that the audit holds of a datasource, as a replay needs them. Read in pages, never all at once.
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

/** How many there are. */
export async function countAudited(store: Pick<Store, 'db'>, asked: Asked): Promise<number> {
  const { total } = await queries(store, asked)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  return Number(total)
}

/** Page after page, the newest first. */
export async function* auditedQueries(store: Pick<Store, 'db'>, asked: Asked): AsyncIterable<readonly AuditedQuery[]> {
  let after: Place | null = null
  do {
    const rows: readonly Row[] = await page(store, asked, after)
    yield rows.map(queryOf)
    after = rows.length < PAGE ? null : (rows.at(-1) ?? null)
  } while (after !== null)
}

interface Place {
  readonly id: AuditId
  readonly at: string
}

function queries(store: Pick<Store, 'db'>, { id, teamId, since }: Asked) {
  return store.db
    .selectFrom('audit')
    .where('team_id', '=', teamId)
    .where('datasource_id', '=', id)
    .where('action', '=', QUERY)
    .where('at', '>=', since)
    .where((eb) => eb.or([eb('code', 'is', null), eb('code', 'not in', [...NO_QUERY])]))
}

function page(store: Pick<Store, 'db'>, asked: Asked, after: Place | null) {
  const newest = queries(store, asked)
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
