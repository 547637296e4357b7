// Counts queries by day, caller and datasource. The transaction that writes the audit rows updates the counts.
import { setImmediate } from 'node:timers/promises'
import { sql, type Transaction } from 'kysely'
import type { AccountId, ApiKeyId, DatasourceId, GrantId, TeamId } from '../ids.ts'
import { deleteInPortions } from '../store/delete-in-portions.ts'
import type { Store } from '../store/open.ts'
import type { Tables, UsageDayTable } from '../store/tables.ts'
import type { Content } from './chain/seal.ts'
import type { UsageBounds } from './usage-bounds.ts'
import { addSlots, pruneSlots, Slots } from './usage-by-hour.ts'

const QUERY = 'runQuery'
/** Longer than the longest period of the usage page. */
const KEPT_DAYS = 400
const DAY_MS = 86_400_000

type Line = Omit<UsageDayTable, 'chain'>

/** Counts that are not in the store yet. */
export class Counts {
  /** The lines of each caller. There are few, so comparing them is cheaper than building a key of five values. */
  readonly #lines = new Map<string, Line[]>()
  readonly slots = new Slots()

  add(row: Content): void {
    if (row.action !== QUERY || row.team_id === null) return
    const who = row.key_id ?? row.account_id ?? ''
    let callerLines = this.#lines.get(who)
    if (callerLines === undefined) this.#lines.set(who, (callerLines = []))
    let line = callerLines.find((known) => isOf(known, row))
    if (line === undefined) callerLines.push((line = lineOf(row, row.team_id)))
    line.queries += row.times
    if (row.outcome === 'DENIED') line.denied += row.times
    if (row.outcome === 'FAILED') line.failed += row.times
    line.row_count += row.row_count ?? 0
    this.slots.add(row, row.team_id, line.key_id)
  }

  get lines(): readonly Line[] {
    return [...this.#lines.values()].flat()
  }
}

export async function addCounts(
  tx: Transaction<Tables>,
  chain: string,
  counts: Counts,
  bounds: UsageBounds,
): Promise<void> {
  await addSlots(tx, chain, counts.slots, bounds)
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

/** `queries` includes denied and failed queries. `rows` is the number of returned rows. */
export interface Counted {
  readonly queries: number
  readonly denied: number
  readonly failed: number
  readonly rows: number
}

export interface UsageLine extends Counted {
  /** YYYY-MM-DD, UTC. */
  readonly date: string
  readonly datasourceId: DatasourceId | ''
  readonly accountId: AccountId | ''
  /** The id of an API key, or of an agent's grant. */
  readonly keyId: ApiKeyId | GrantId | ''
}

/** Each statement reads one day. */
export async function readUsage(store: Pick<Store, 'db'>, teamId: TeamId, from: string): Promise<readonly UsageLine[]> {
  const lines: UsageLine[] = []
  const ofTeam = () => store.db.selectFrom('usage_days').where('team_id', '=', teamId)
  let next = await ofTeam().select('date').where('date', '>=', from).orderBy('date').limit(1).executeTakeFirst()
  while (next !== undefined) {
    const { date } = next
    lines.push(...(await linesOf(store, teamId, date)))
    // SQLite answers synchronously, so let other requests run.
    await setImmediate()
    next = await ofTeam().select('date').where('date', '>', date).orderBy('date').limit(1).executeTakeFirst()
  }
  return lines
}

async function linesOf(store: Pick<Store, 'db'>, teamId: TeamId, date: string): Promise<readonly UsageLine[]> {
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
    .where('date', '=', date)
    .groupBy(['date', 'datasource_id', 'account_id', 'key_id'])
    .orderBy('datasource_id')
    .orderBy('account_id')
    .orderBy('key_id')
    .execute()
  // PostgreSQL returns the sum of bigints as numeric, which arrives as a string.
  return lines.map((line) => ({
    ...line,
    queries: Number(line.queries),
    denied: Number(line.denied),
    failed: Number(line.failed),
    rows: Number(line.rows),
  }))
}

export async function forgetUsage(store: Pick<Store, 'commit' | 'dialect'>, teamId: TeamId): Promise<void> {
  await deleteInPortions(store, 'usage_days', (eb) => eb('team_id', '=', teamId))
  await deleteInPortions(store, 'usage_slots', (eb) => eb('team_id', '=', teamId))
}

export async function pruneUsage(store: Pick<Store, 'db' | 'commit' | 'dialect'>, now: number): Promise<void> {
  const before = new Date(now - KEPT_DAYS * DAY_MS).toISOString().slice(0, 10)
  await deleteInPortions(store, 'usage_days', (eb) => eb('date', '<', before))
  await pruneSlots(store, now)
}
