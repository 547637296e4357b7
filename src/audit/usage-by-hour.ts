// Counts queries by hour, caller, datasource and client. The transaction that writes the audit rows updates the counts.
import { setImmediate } from 'node:timers/promises'
import { sql, type Selectable, type Transaction } from 'kysely'
import { z } from 'zod'
import type { TeamId } from '../ids.ts'
import { deleteInPortions } from '../store/delete-in-portions.ts'
import type { Store } from '../store/open.ts'
import type { Tables, UsageSlotTable } from '../store/tables.ts'
import type { Content } from './chain/seal.ts'
import { readDetail } from './row-detail.ts'
import { addTime, type Times } from './duration-histogram.ts'
import { LINES_MAX, placesFor, type UsageBounds } from './usage-bounds.ts'

export const SLOT_DAYS = 31
const KEPT_DAYS = SLOT_DAYS + 1
const DAY_MS = 86_400_000
/** Reading and summing this many lines takes a few milliseconds. */
const READ_AT_ONCE = 500
const HOUR_CHARS = 13

type Place = Pick<UsageSlotTable, 'team_id' | 'slot' | 'datasource_id' | 'account_id' | 'key_id' | 'client'>

interface Sums {
  queries: number
  denied: number
  failed: number
  row_count: number
  bytes: number
  duration_ms: number
  estimate: number
  readonly times: Times
}

/** Counts that are not in the store yet. */
export class Slots {
  readonly #lines = new Map<string, Place & Sums>()
  /** Most rows belong to the same line as the row before. */
  #last: (Place & Sums) | undefined

  add(row: Content, teamId: TeamId, keyId: Place['key_id']): void {
    const line = this.#lineOf(row, teamId, keyId)
    line.queries += row.times
    if (row.outcome === 'DENIED') line.denied += row.times
    if (row.outcome === 'FAILED') line.failed += row.times
    line.row_count += row.row_count ?? 0
    line.bytes += row.bytes ?? 0
    // A row has an estimate only if the query was refused for its cost.
    if (row.outcome === 'DENIED') line.estimate += readDetail(row.detail).estimate ?? 0
    if (row.duration_ms === null || row.outcome !== 'ANSWERED') return
    line.duration_ms += row.duration_ms
    addTime(line.times, row.duration_ms)
  }

  #lineOf(row: Content, teamId: TeamId, keyId: Place['key_id']): Place & Sums {
    if (this.#last !== undefined && isOf(this.#last, row, teamId, keyId)) return this.#last
    const slot = row.at.slice(0, HOUR_CHARS)
    const [datasource_id, account_id, client] = [
      row.datasource_id ?? '',
      row.account_id ?? '',
      row.client ?? '',
    ] as const
    const key = `${teamId} ${slot} ${datasource_id} ${account_id} ${keyId} ${client}`
    let line = this.#lines.get(key)
    if (line === undefined) {
      const place = { team_id: teamId, slot, datasource_id, account_id, key_id: keyId, client }
      const sums = { queries: 0, denied: 0, failed: 0, row_count: 0, bytes: 0, duration_ms: 0, estimate: 0 }
      this.#lines.set(key, (line = { ...place, ...sums, times: new Map() }))
    }
    this.#last = line
    return line
  }

  get lines(): readonly (Place & Sums)[] {
    return [...this.#lines.values()]
  }
}

function isOf(line: Place, row: Content, teamId: TeamId, keyId: Place['key_id']): boolean {
  return (
    line.datasource_id === (row.datasource_id ?? '') &&
    line.key_id === keyId &&
    line.account_id === (row.account_id ?? '') &&
    line.team_id === teamId &&
    line.client === (row.client ?? '') &&
    row.at.startsWith(line.slot)
  )
}

const WrittenTimes = z.array(z.tuple([z.number(), z.number()]))

/** No other process writes the lines of this chain, so reading a line and then writing the sum is safe. */
export async function addSlots(
  tx: Transaction<Tables>,
  chain: string,
  slots: Slots,
  bounds: UsageBounds,
): Promise<void> {
  for (const line of slots.lines) {
    const client = await bounds.countedClient(tx, line)
    let place = { ...placeOf(line), client, chain }
    let known: Selectable<UsageSlotTable> | undefined
    for (const [at, max] of placesFor(place, LINES_MAX)) {
      place = at
      known = await lineAt(tx, place)
      if (known !== undefined || (await bounds.hasRoom(tx, line, max))) break
    }
    const times = new Map(line.times)
    for (const [bucket, count] of known === undefined ? [] : WrittenTimes.parse(JSON.parse(known.times))) {
      times.set(bucket, (times.get(bucket) ?? 0) + count)
    }
    const sums = {
      queries: line.queries + Number(known?.queries ?? 0),
      denied: line.denied + Number(known?.denied ?? 0),
      failed: line.failed + Number(known?.failed ?? 0),
      row_count: line.row_count + Number(known?.row_count ?? 0),
      bytes: line.bytes + Number(known?.bytes ?? 0),
      duration_ms: line.duration_ms + Number(known?.duration_ms ?? 0),
      estimate: line.estimate + Number(known?.estimate ?? 0),
      times: JSON.stringify([...times]),
    }
    if (known === undefined)
      await tx
        .insertInto('usage_slots')
        .values({ ...place, ...sums })
        .execute()
    else
      await tx
        .updateTable('usage_slots')
        .set(sums)
        .where(({ and }) => and(place))
        .execute()
  }
}

function lineAt(tx: Transaction<Tables>, place: Place & { readonly chain: string }) {
  return tx
    .selectFrom('usage_slots')
    .selectAll()
    .where(({ and }) => and(place))
    .executeTakeFirst()
}

function placeOf({ team_id, slot, datasource_id, account_id, key_id, client }: Place): Place {
  return { team_id, slot, datasource_id, account_id, key_id, client }
}

export interface UsageSlot extends Omit<Place, 'team_id'>, Sums {}

/** If `signal` aborts, throws its reason. */
export async function* readSlots(
  store: Pick<Store, 'db'>,
  teamId: TeamId,
  from: string,
  signal: AbortSignal,
): AsyncIterable<readonly UsageSlot[]> {
  for (let last: Selectable<UsageSlotTable> | undefined; ;) {
    signal.throwIfAborted()
    let next = store.db.selectFrom('usage_slots').selectAll().where('team_id', '=', teamId)
    next = last === undefined ? next.where('slot', '>=', from) : next.where(isAfter(last))
    const rows: readonly Selectable<UsageSlotTable>[] = await next
      .orderBy('slot')
      .orderBy('datasource_id')
      .orderBy('account_id')
      .orderBy('key_id')
      .orderBy('client')
      .orderBy('chain')
      .limit(READ_AT_ONCE)
      .execute()
    yield rows.map(slotOf)
    last = rows.at(-1)
    if (rows.length < READ_AT_ONCE) return
    // SQLite answers synchronously, so let other requests run.
    await setImmediate()
  }
}

/** A condition on the primary key. With an offset, the store would read all earlier lines again. */
function isAfter({ slot, datasource_id, account_id, key_id, client, chain }: Selectable<UsageSlotTable>) {
  return sql<boolean>`(slot, datasource_id, account_id, key_id, client, chain) > (${slot}, ${datasource_id}, ${account_id}, ${key_id}, ${client}, ${chain})`
}

/** PostgreSQL returns bigints as strings. */
function slotOf(row: Selectable<UsageSlotTable>): UsageSlot {
  return {
    ...row,
    queries: Number(row.queries),
    denied: Number(row.denied),
    failed: Number(row.failed),
    row_count: Number(row.row_count),
    bytes: Number(row.bytes),
    duration_ms: Number(row.duration_ms),
    estimate: Number(row.estimate),
    times: new Map(WrittenTimes.parse(JSON.parse(row.times))),
  }
}

export async function pruneSlots(store: Pick<Store, 'commit' | 'dialect'>, now: number): Promise<void> {
  const before = new Date(now - KEPT_DAYS * DAY_MS).toISOString().slice(0, HOUR_CHARS)
  await deleteInPortions(store, 'usage_slots', (eb) => eb('slot', '<', before))
}
