// Queries by day, key and datasource, counted with the rows of the audit in one transaction, so that usage need not read
// a million of them. They hold no text, and outlive the rows.
import type { Transaction } from 'kysely'
import type { AccountId, ApiKeyId, DatasourceId, TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { Tables, UsageDayTable } from '../store/tables.ts'
import type { Content } from './seal.ts'

/** What counts as a query. */
const QUERY = 'runQuery'
/** Longer than anybody may ask for. */
const KEPT_DAYS = 400
const DAY_MS = 86_400_000

/** Adds these rows; several processes that share a store each have their own lines (`chain`). */
export async function count(tx: Transaction<Tables>, chain: string, rows: readonly Content[]): Promise<void> {
  for (const line of linesOf(chain, rows)) {
    await tx
      .insertInto('usage_days')
      .values(line)
      .onConflict((oc) =>
        oc.columns(['team_id', 'date', 'datasource_id', 'account_id', 'key_id', 'chain']).doUpdateSet((eb) => ({
          queries: eb('usage_days.queries', '+', line.queries),
          denied: eb('usage_days.denied', '+', line.denied),
          failed: eb('usage_days.failed', '+', line.failed),
          row_count: eb('usage_days.row_count', '+', line.row_count),
        })),
      )
      .execute()
  }
}

function linesOf(chain: string, rows: readonly Content[]): Iterable<UsageDayTable> {
  const lines = new Map<string, UsageDayTable>()
  for (const row of rows) {
    if (row.action !== QUERY || row.team_id === null) continue
    const date = row.at.slice(0, 10)
    const key = `${row.team_id} ${date} ${row.datasource_id ?? ''} ${row.account_id ?? ''} ${row.key_id ?? ''}`
    const line = lines.get(key) ?? {
      team_id: row.team_id,
      date,
      datasource_id: row.datasource_id ?? '',
      account_id: row.account_id ?? '',
      key_id: row.key_id ?? '',
      chain,
      queries: 0,
      denied: 0,
      failed: 0,
      row_count: 0,
    }
    line.queries += row.times
    if (row.outcome === 'DENIED') line.denied += row.times
    if (row.outcome === 'FAILED') line.failed += row.times
    line.row_count += row.row_count ?? 0
    lines.set(key, line)
  }
  return lines.values()
}

/** Queries, refused and failed ones among them, and the rows they were answered with. */
export interface Counted {
  readonly queries: number
  readonly denied: number
  readonly failed: number
  readonly rows: number
}

/** Counts of one day, caller and datasource. */
export interface UsageLine extends Counted {
  /** YYYY-MM-DD, UTC. */
  readonly date: string
  readonly datasourceId: DatasourceId | ''
  readonly accountId: AccountId | ''
  readonly keyId: ApiKeyId | ''
}

/** A team's lines from a day on, the oldest first. */
export async function readUsage(store: Pick<Store, 'db'>, teamId: TeamId, from: string): Promise<readonly UsageLine[]> {
  const lines = await store.db
    .selectFrom('usage_days')
    .select(({ fn }) => [
      'date',
      'datasource_id as datasourceId',
      'account_id as accountId',
      'key_id as keyId',
      fn.sum<number>('queries').as('queries'),
      fn.sum<number>('denied').as('denied'),
      fn.sum<number>('failed').as('failed'),
      fn.sum<number>('row_count').as('rows'),
    ])
    .where('team_id', '=', teamId)
    .where('date', '>=', from)
    .groupBy(['date', 'datasource_id', 'account_id', 'key_id'])
    .orderBy('date')
    .orderBy('datasource_id')
    .orderBy('account_id')
    .orderBy('key_id')
    .execute()
  // PostgreSQL adds whole numbers up to a numeric, which comes as a text.
  return lines.map((line) => ({
    ...line,
    queries: Number(line.queries),
    denied: Number(line.denied),
    failed: Number(line.failed),
    rows: Number(line.rows),
  }))
}

/** Removes what nobody can ask for any more. */
export async function pruneUsage(store: Pick<Store, 'append'>, now: number): Promise<void> {
  const before = new Date(now - KEPT_DAYS * DAY_MS).toISOString().slice(0, 10)
  await store.append((tx) => tx.deleteFrom('usage_days').where('date', '<', before).execute())
}
