// Bounds the lines of usage that a team adds: the names of its clients in a day, and its lines in an hour. The writer
// keeps both in memory, because reading all lines of the day at each write would block the event loop on SQLite.
import type { Transaction } from 'kysely'
import { BoundedMap } from '../bounded-map.ts'
import type { Tables, UsageSlotTable } from '../store/tables.ts'

/** Clients choose their names freely. Beyond this many names a day and team, clients are counted under ''. */
const CLIENTS_MAX = 50
/**
 * When a team has this many lines in an hour, new callers are counted together, by datasource. Otherwise a caller with
 * many keys and client names could store a line with each query.
 */
export const LINES_MAX = 1_000
/** After a start, the names are read from this many lines. So a restart may add a few names to a day. */
const NAMES_READ_MAX = 1_000
/** With PostgreSQL, other processes add lines too, so the bounds are read again after this time. */
const FRESH_MS = 60_000
const TEAMS_MAX = 1_000

type Place = Pick<UsageSlotTable, 'team_id' | 'slot' | 'client'>

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

  /** Counts the line if the team may have another one in this hour. */
  async hasRoom(tx: Transaction<Tables>, { team_id, slot }: Place): Promise<boolean> {
    const known = await this.#known(this.#lines, `${team_id} ${slot}`, async () => {
      const lines = tx
        .selectFrom('usage_slots')
        .select('slot')
        .where('team_id', '=', team_id)
        .where('slot', '=', slot)
        .limit(LINES_MAX)
      const { count } = await tx
        .selectFrom(lines.as('lines'))
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .executeTakeFirstOrThrow()
      return Number(count)
    })
    if (known.value >= LINES_MAX) return false
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
