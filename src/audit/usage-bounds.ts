// Bounds the lines of usage that a team adds: the names of its clients in a day, and its lines in an hour and in a day.
// The writer keeps them in memory, because reading all lines of the day at each write would block the event loop on
// SQLite.
import type { SelectQueryBuilder, Transaction } from 'kysely'
import { BoundedMap } from '../bounded-map.ts'
import type { TeamId } from '../ids.ts'
import type { Tables, UsageDayTable, UsageSlotTable } from '../store/tables.ts'

/** Clients choose their names freely. Beyond this many names a day and team, clients are counted under ''. */
const CLIENTS_MAX = 50
/**
 * When a team has this many lines in an hour, new callers are counted together, by datasource. Otherwise a caller with
 * many keys and client names could store a line with each query. At twice as many, all datasources are counted
 * together, because a caller can also create and delete datasources.
 */
export const LINES_MAX = 1_000
/** The same for a day. */
export const DAY_LINES_MAX = 2_000
/** After a start, the names are read from this many lines. So a restart may add a few names to a day. */
const NAMES_READ_MAX = 1_000
/** With PostgreSQL, other processes add lines too, so the bounds are read again after this time. */
const FRESH_MS = 60_000
const TEAMS_MAX = 1_000

type Place = Pick<UsageSlotTable, 'team_id' | 'slot' | 'client'>

type Counted = Pick<UsageDayTable, 'datasource_id' | 'account_id' | 'key_id'> & { readonly client?: string }

/** The places where queries may be counted, and how many lines there may be before a line is added there. */
export function placesFor<T extends Counted>(place: T, linesMax: number): readonly (readonly [T, number])[] {
  const together: T = { ...place, account_id: '', key_id: '', ...(place.client !== undefined && { client: '' }) }
  return [
    [place, linesMax],
    [together, 2 * linesMax],
    [{ ...together, datasource_id: '' }, Infinity],
  ]
}

interface Known<T> {
  readonly readAt: number
  value: T
}

export class UsageBounds {
  readonly #names = new BoundedMap<string, Known<Set<string>>>(TEAMS_MAX)
  readonly #lines = new BoundedMap<string, Known<number>>(TEAMS_MAX)
  readonly #freshMs: number
  readonly #now: () => number

  constructor(dialect: 'sqlite' | 'postgres', now: () => number) {
    this.#freshMs = dialect === 'sqlite' ? Infinity : FRESH_MS
    this.#now = now
  }

  /** Returns '' for a new client if the team already has too many clients on this day. */
  async countedClient(tx: Transaction<Tables>, { team_id, slot, client }: Place): Promise<string> {
    if (client === '') return ''
    const day = slot.slice(0, 10)
    const { value: names } = await this.#known(this.#names, `${team_id} ${day}`, async () => {
      const lines = tx
        .selectFrom('usage_slots')
        .select('client')
        .where('team_id', '=', team_id)
        .where('slot', '>=', day)
        .where('slot', '<', `${day}U`)
        .limit(NAMES_READ_MAX)
      const rows = await tx
        .selectFrom(lines.as('lines'))
        .select('client')
        .distinct()
        .where('client', '!=', '')
        .limit(CLIENTS_MAX)
        .execute()
      return new Set(rows.map((row) => row.client))
    })
    if (names.has(client)) return client
    if (names.size >= CLIENTS_MAX) return ''
    names.add(client)
    return client
  }

  /** Counts the line if the team has fewer than `max` lines in this hour. */
  async hasRoom(tx: Transaction<Tables>, { team_id, slot }: Place, max: number): Promise<boolean> {
    const lines = tx
      .selectFrom('usage_slots')
      .select('team_id')
      .where('team_id', '=', team_id)
      .where('slot', '=', slot)
      .limit(2 * LINES_MAX)
    return await this.#hasRoom(tx, `${team_id} ${slot}`, lines, max)
  }

  /** Counts the line if the team has fewer than `max` lines on this day. */
  async hasRoomInDay(
    tx: Transaction<Tables>,
    { team_id, date }: Pick<UsageDayTable, 'team_id' | 'date'>,
    max: number,
  ): Promise<boolean> {
    const lines = tx
      .selectFrom('usage_days')
      .select('team_id')
      .where('team_id', '=', team_id)
      .where('date', '=', date)
      .limit(2 * DAY_LINES_MAX)
    return await this.#hasRoom(tx, `${team_id} ${date}`, lines, max)
  }

  async #hasRoom(
    tx: Transaction<Tables>,
    key: string,
    lines: SelectQueryBuilder<Tables, keyof Tables, { team_id: TeamId }>,
    max: number,
  ): Promise<boolean> {
    const known = await this.#known(this.#lines, key, async () => {
      const { count } = await tx
        .selectFrom(lines.as('lines'))
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .executeTakeFirstOrThrow()
      return Number(count)
    })
    if (known.value >= max) return false
    known.value++
    return true
  }

  /** Reads the bounds again at the next write. Call this if a write failed. */
  forget(): void {
    this.#names.clear()
    this.#lines.clear()
  }

  async #known<T>(from: BoundedMap<string, Known<T>>, key: string, read: () => Promise<T>): Promise<Known<T>> {
    const now = this.#now()
    const found = from.get(key)
    if (found !== undefined && now - found.readAt < this.#freshMs) return found
    const known = { readAt: now, value: await read() }
    from.set(key, known)
    return known
  }
}
