// Counts queries by day, caller and datasource. The transaction that writes the audit rows updates the counts.
import { setImmediate } from 'node:timers/promises'
import { sql, type Selectable, type Transaction } from 'kysely'
import type { AccountId, ApiKeyId, DatasourceId, GrantId, TeamId } from '../ids.ts'
import { deleteInPortions } from '../store/delete-in-portions.ts'
import type { Store } from '../store/open.ts'
import type { Tables, UsageDayTable } from '../store/tables.ts'
import type { Content } from './chain/seal.ts'
import { DAY_LINES_MAX, placesFor, type UsageBounds } from './usage-bounds.ts'
import { addSlots, pruneSlots, Slots } from './usage-by-hour.ts'

const QUERY = 'runQuery'
/** Longer than the longest period of the usage page. */
const KEPT_DAYS = 400
const DAY_MS = 86_400_000
const READ_AT_ONCE = 500

type Line = Omit<UsageDayTable, 'chain'>
type Place = Pick<Line, 'team_id' | 'date' | 'datasource_id' | 'account_id' | 'key_id'>

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
    const place = { ...placeOf(line), chain }
    for (const [at, max] of placesFor(place, DAY_LINES_MAX)) {
      if (await isAdded(tx, at, line)) break
      if (!(await bounds.hasRoomInDay(tx, line, max))) continue
      const { queries, denied, failed, row_count } = line
      await tx
        .insertInto('usage_days')
        .values({ ...at, queries, denied, failed, row_count })
        .execute()
      break
    }
  }
}

/** Returns false if there is no such line. Only this process writes the lines of its chain. */
async function isAdded(
  tx: Transaction<Tables>,
  place: Place & { readonly chain: string },
  line: Line,
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('usage_days')
    .set((eb) => ({
      queries: eb('queries', '+', line.queries),
      denied: eb('denied', '+', line.denied),
      failed: eb('failed', '+', line.failed),
      row_count: eb('row_count', '+', line.row_count),
    }))
    .where(({ and }) => and(place))
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

function placeOf({ team_id, date, datasource_id, account_id, key_id }: Place): Place {
  return { team_id, date, datasource_id, account_id, key_id }
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

/** Yields lines in portions, the newest day first. If `signal` aborts, throws its reason. */
export async function* readUsage(
  store: Pick<Store, 'db'>,
  teamId: TeamId,
  from: string,
  signal: AbortSignal,
): AsyncIterable<readonly UsageLine[]> {
  for (let last: Selectable<UsageDayTable> | undefined; ;) {
    signal.throwIfAborted()
    let next = store.db.selectFrom('usage_days').selectAll().where('team_id', '=', teamId).where('date', '>=', from)
    if (last !== undefined) next = next.where(isBefore(last))
    const rows: readonly Selectable<UsageDayTable>[] = await next
      .orderBy('date', 'desc')
      .orderBy('datasource_id', 'desc')
      .orderBy('account_id', 'desc')
      .orderBy('key_id', 'desc')
      .orderBy('chain', 'desc')
      .limit(READ_AT_ONCE)
      .execute()
    yield rows.map(shown)
    last = rows.at(-1)
    if (rows.length < READ_AT_ONCE) return
    // SQLite answers synchronously, so let other requests run.
    await setImmediate()
  }
}

/** A condition on the primary key. With an offset, the store would read all earlier lines again. */
function isBefore({ date, datasource_id, account_id, key_id, chain }: Selectable<UsageDayTable>) {
  return sql<boolean>`(date, datasource_id, account_id, key_id, chain) < (${date}, ${datasource_id}, ${account_id}, ${key_id}, ${chain})`
}

/** PostgreSQL returns bigints as strings. */
function shown(row: Selectable<UsageDayTable>): UsageLine {
  return {
    date: row.date,
    datasourceId: row.datasource_id,
    accountId: row.account_id,
    keyId: row.key_id,
    queries: Number(row.queries),
    denied: Number(row.denied),
    failed: Number(row.failed),
    rows: Number(row.row_count),
  }
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
