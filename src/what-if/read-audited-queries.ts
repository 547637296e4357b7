// Reads a datasource's queries from the audit, page by page, because all of them may not fit in memory.
import { readDetail } from '../audit/row-detail.ts'
import { newest, rowOfTeam } from '../audit/reading/newest-rows.ts'
import type { AuditFilter } from '../audit/reading/row-filter.ts'
import type { AuditId, DatasourceId, TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { AuditTable } from '../store/tables.ts'

export interface AuditedQuery {
  readonly id: AuditId
  /** The text that the caller sent. Null if it was redacted or omitted. */
  readonly text: string | null
  readonly params: unknown
  readonly code: string | null
  /** The refused table, column or other object, as JSON. */
  readonly blocked: string | null
}

const QUERY = 'runQuery'
/** Error codes of requests that failed before their query was read. */
const NO_QUERY: readonly (string | null)[] = ['INVALID_REQUEST', 'NOT_CONNECTED', 'DATASOURCE_DISABLED']

interface AuditScope {
  readonly id: DatasourceId
  readonly teamId: TeamId
  /** ISO 8601, in UTC. */
  readonly since: string
}

/** Returns the number of queries. Throws the abort reason of `signal`. */
export async function countAudited(store: Pick<Store, 'db'>, scope: AuditScope, signal: AbortSignal): Promise<number> {
  let sum = 0
  for await (const queries of auditedQueries(store, scope, signal)) sum += queries.length
  return sum
}

/** Newest first. Throws the abort reason of `signal`. */
export async function* auditedQueries(
  store: Pick<Store, 'db'>,
  { id, teamId, since }: AuditScope,
  signal: AbortSignal,
): AsyncIterable<readonly AuditedQuery[]> {
  const filter: AuditFilter = { datasourceId: id, actions: [QUERY], from: since }
  for await (const rows of newest(store, teamId, { filter }, null, signal)) {
    yield rows.filter(({ code }) => !NO_QUERY.includes(code)).map(queryOf)
  }
}

/** Returns an audit row of this datasource with any action, or null. */
export async function auditedQuery(
  store: Pick<Store, 'db'>,
  { id: datasourceId, teamId }: Pick<AuditScope, 'id' | 'teamId'>,
  id: AuditId,
): Promise<AuditedQuery | null> {
  const row = await rowOfTeam(store, teamId, id)
  return row?.datasource_id === datasourceId ? queryOf(row) : null
}

type Row = Pick<AuditTable, 'id' | 'code' | 'blocked' | 'query' | 'detail'> & { readonly redacted: number }

function queryOf({ id, code, blocked, query, detail, redacted }: Row): AuditedQuery {
  return { id, code, blocked, text: redacted === 0 ? query : null, params: readDetail(detail).params }
}
