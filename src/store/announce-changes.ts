// Announces changes to the other processes on a PostgreSQL store with NOTIFY, and receives their announcements with
// LISTEN. Announcements only make changes visible sooner, because cached values also expire. So a lost announcement or
// a connection pooler without LISTEN does no harm.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { sql, type Kysely } from 'kysely'
import type { Client } from 'pg'
import type { Tables } from './tables.ts'

const CHANNEL = 'vitrine_changed'
/** The shortest pause before a new attempt to connect. Each failed attempt doubles the pause, up to AGAIN_MS_MAX. */
const AGAIN_MS = 500
const AGAIN_MS_MAX = 10_000

export interface Announcements extends AsyncDisposable {
  /** Announces a change. Within a transaction, the other processes are notified when the transaction commits. */
  announce(db: Kysely<Tables>): Promise<void>
}

/** Opens the announcements. Calls `changed` for each announcement of another process, and after each reconnection. */
export function openAnnouncements(makeClient: () => Client, changed: () => void): Announcements {
  return new Listening(makeClient, changed)
}

class Listening implements Announcements {
  /** Identifies the announcements of this process. */
  readonly #id = randomUUID()
  readonly #stop = new AbortController()
  readonly #makeClient: () => Client
  readonly #changed: () => void
  readonly #done: Promise<void>

  constructor(makeClient: () => Client, changed: () => void) {
    this.#makeClient = makeClient
    this.#changed = changed
    this.#done = this.#listen()
  }

  async announce(db: Kysely<Tables>): Promise<void> {
    await sql`select pg_notify(${CHANNEL}, ${this.#id})`.execute(db)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#done
  }

  async #listen(): Promise<void> {
    for (let wait = AGAIN_MS; !this.#stop.signal.aborted; wait = Math.min(AGAIN_MS_MAX, wait * 2)) {
      if (await this.#listenOnce()) wait = AGAIN_MS
      try {
        await pause(wait, undefined, { signal: this.#stop.signal, ref: false })
      } catch {
        return
      }
    }
  }

  /** Listens until the connection ends. Returns false if no connection was established. */
  async #listenOnce(): Promise<boolean> {
    const client = this.#makeClient()
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    client.on('error', () => end())
    client.on('end', () => end())
    client.on('notification', ({ payload }) => {
      if (payload !== this.#id) this.#changed()
    })
    this.#stop.signal.addEventListener('abort', () => end(), { once: true })
    let isListening = false
    try {
      await Promise.race([client.connect().then(() => client.query(`LISTEN ${CHANNEL}`)), ended])
      isListening = true
      // Announcements may have been missed since the last connection.
      this.#changed()
      await ended
    } catch {
      // The caller tries again. Until then, cached values still expire.
    }
    // Do not wait: a frozen server never closes its side of the connection.
    void Promise.race([client.end(), pause(1_000, undefined, { ref: false })]).catch(() => undefined)
    return isListening
  }
}
