// Each process caches rows of the store. If several processes share a PostgreSQL store, a process that changes
// something tells the others with NOTIFY, and they receive this with LISTEN and clear their caches. Cached values also
// expire, so a lost announcement does no harm.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { sql, type Kysely } from 'kysely'
import type { Client } from 'pg'
import type { Tables } from './tables.ts'

const CHANNEL = 'vitrine_changed'
/** The pause before the first new attempt to connect. Each failed attempt doubles the pause, up to AGAIN_MS_MAX. */
const AGAIN_MS = 500
const AGAIN_MS_MAX = 10_000
/** The start of the service waits this long for the first connection. */
const READY_MS = 10_000

export interface Announcements extends AsyncDisposable {
  /** Resolves when announcements are received, or when the first attempt to connect has failed or takes too long. */
  readonly ready: Promise<void>
  /** If `db` is a transaction, the other processes are told when it commits. */
  announce(db: Kysely<Tables>): Promise<void>
}

/** Calls `changed` when another process announces a change, and after each reconnection. */
export function openAnnouncements(makeClient: () => Client, changed: () => void): Announcements {
  return new Listening(makeClient, changed)
}

class Listening implements Announcements {
  /** Distinguishes our own announcements from those of other processes. */
  readonly #id = randomUUID()
  readonly #stop = new AbortController()
  readonly #makeClient: () => Client
  readonly #changed: () => void
  readonly #done: Promise<void>
  readonly #first = Promise.withResolvers<void>()
  readonly ready: Promise<void>

  constructor(makeClient: () => Client, changed: () => void) {
    this.#makeClient = makeClient
    this.#changed = changed
    this.#done = this.#listen()
    this.ready = Promise.race([this.#first.promise, pause(READY_MS, undefined, { ref: false })])
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

  /** Returns when the connection ends. Returns false if no connection was established. */
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
      // Announcements may have been missed while there was no connection.
      this.#changed()
      this.#first.resolve()
      await ended
    } catch {
      // The caller tries again. Until then, cached values still expire.
    }
    this.#first.resolve()
    // A frozen server never closes its side of the connection, so do not wait for it.
    void Promise.race([client.end(), pause(1_000, undefined, { ref: false })]).catch(() => undefined)
    return isListening
  }
}
