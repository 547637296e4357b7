// Queries by day, key and datasource, counted with the rows of the audit in one transaction, so that usage need not read
// a million of them. They hold no text, and outlive the rows.
import { sql, type Transaction } from 'kysely'
import type { AccountId, ApiKeyId, DatasourceId, TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { Tables, UsageDayTable } from '../store/tables.ts'
import type { Content } from './chain/seal.ts'

/** What counts as a query. */
const QUERY = 'runQuery'
/** Longer than anybody may ask for. */
const KEPT_DAYS = 400
const DAY_MS = 86_400_000

type Line = Omit<UsageDayTable, 'chain'>

/** What is counted until it is written. */
export class Counts {
  /** By whoever asks: to put a key together of five parts costs more than to compare the few lines that one of them has. */
  readonly #lines = new Map<string, Line[]>()

  add(row: Content): void {
    if (row.action !== QUERY || row.team_id === null) return
    const who = row.key_id ?? row.account_id ?? ''
    let theirs = this.#lines.get(who)
    if (theirs === undefined) this.#lines.set(who, (theirs = []))
    let line = theirs.find((known) => isOf(known, row))
    if (line === undefined) theirs.push((line = lineOf(row, row.team_id)))
    line.queries += row.times
    if (row.outcome === 'DENIED') line.denied += row.times
    if (row.outcome === 'FAILED') line.failed += row.times
    line.row_count += row.row_count ?? 0
  }

  get lines(): readonly Line[] {
    return [...this.#lines.values()].flat()
  }
}

/** Adds them to what the store has; several processes that share one each have their own lines (`chain`). */
export async function addCounts(tx: Transaction<Tables>, chain: string, counts: Counts): Promise<void> {
  for (const line of counts.lines) {
    const { team_id, date, datasource_id, account_id, key_id, queries, denied, failed, row_count } = line
    await sql`
      insert into usage_days
        (team_id, date, datasource_id, account_id, key_id, chain, queries, denied, failed, row_count)
      values
        (${team_id}, ${date}, ${datasource_id}, ${account_id}, ${key_id}, ${chain}, ${queries}, ${denied}, ${failed},
        ${row_count})
      on conflict (team_id, date, datasource_id, account_id, key_id, chain) do update set
        queries = usage_days.queries + excluded.queries,
        denied = usage_days.denied + excluded.denied,
        failed = usage_days.failed + excluded.failed,
        row_count = usage_days.row_count + excluded.row_count
    `.execute(tx)
  }
}

function isOf(line: Line, row: Content): boolean {
  return (
    line.datasource_id === (row.datasource_id ?? '') &&
    line.team_id === row.team_id &&
    line.account_id === (row.account_id ?? '') &&
    line.key_id === (row.key_id ?? '') &&
    row.at.startsWith(line.date)
  )
}

function lineOf(row: Content, teamId: TeamId): Line {
  return {
    team_id: teamId,
    date: row.at.slice(0, 10),
    datasource_id: row.datasource_id ?? '',
    account_id: row.account_id ?? '',
    key_id: row.key_id ?? '',
    queries: 0,
    denied: 0,
    failed: 0,
    row_count: 0,
  }
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

/** Of a team that is deleted: nobody can ask for it any more. */
export async function forgetUsage(tx: Transaction<Tables>, teamId: TeamId): Promise<void> {
  await tx.deleteFrom('usage_days').where('team_id', '=', teamId).execute()
}

/** Removes what nobody can ask for any more. */
export async function pruneUsage(store: Pick<Store, 'append'>, now: number): Promise<void> {
  const before = new Date(now - KEPT_DAYS * DAY_MS).toISOString().slice(0, 10)
  await store.append((tx) => tx.deleteFrom('usage_days').where('date', '<', before).execute())
}
