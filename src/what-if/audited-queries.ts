// The queries that the audit holds of a datasource, as a replay needs them. Read in pages, never all at once.
import { readDetail } from '../audit/detail.ts'
import { newest, rowOfTeam } from '../audit/reading/newest.ts'
import type { AuditId, DatasourceId, TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { AuditTable } from '../store/tables.ts'

export interface AuditedQuery {
  readonly id: AuditId
  /** As the caller wrote it; null where it was redacted or left out. */
  readonly text: string | null
  /** Of the text; undefined where it has none. */
  readonly params: unknown
  readonly code: string | null
  /** JSON of what the guard or the database stopped it for. */
  readonly blocked: string | null
}

/** Calls that only ask what a query would do are none. */
const QUERY = 'runQuery'
/** Refused before anybody read a query in it. */
const NO_QUERY: readonly (string | null)[] = ['INVALID_REQUEST', 'NOT_CONNECTED', 'DATASOURCE_DISABLED']

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
  for await (const queries of auditedQueries(store, asked, signal)) sum += queries.length
  return sum
}

/** A portion at a time, the newest first. Throws the reason of `signal`. */
export async function* auditedQueries(
  store: Pick<Store, 'db'>,
  { id, teamId, since }: Asked,
  signal: AbortSignal,
): AsyncIterable<readonly AuditedQuery[]> {
  const filter = { datasourceId: id, action: QUERY, from: since }
  for await (const rows of newest(store, teamId, { filter }, null, signal)) {
    yield rows.filter(({ code }) => !NO_QUERY.includes(code)).map(queryOf)
  }
}

/** One row, whatever call it is of; null where this datasource has no such row. */
export async function auditedQuery(
  store: Pick<Store, 'db'>,
  { id: datasourceId, teamId }: Pick<Asked, 'id' | 'teamId'>,
  id: AuditId,
): Promise<AuditedQuery | null> {
  const row = await rowOfTeam(store, teamId, id)
  return row?.datasource_id === datasourceId ? queryOf(row) : null
}

type Row = Pick<AuditTable, 'id' | 'code' | 'blocked' | 'query' | 'detail'> & { readonly redacted: number }

function queryOf({ id, code, blocked, query, detail, redacted }: Row): AuditedQuery {
  return { id, code, blocked, text: redacted === 0 ? query : null, params: readDetail(detail).params }
}
