// If several processes share a PostgreSQL store, each process caches rows of it. A process that changes the store sends
// NOTIFY, and the other processes clear their caches. Cached values also expire, in case an announcement is lost.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { sql, type Kysely } from 'kysely'
import type { Client } from 'pg'
import type { Tables } from './tables.ts'

const CHANNEL = 'vitrine_changed'
/** The pause before the first reconnection. Each failed attempt doubles it, up to AGAIN_MS_MAX. */
const AGAIN_MS = 500
const AGAIN_MS_MAX = 10_000
const READY_MS = 10_000

export interface Announcements extends AsyncDisposable {
  /** Resolves when announcements are received, or when the first attempt has failed or takes too long. */
  readonly ready: Promise<void>
  /** If `db` is a transaction, the announcement is sent when it commits. */
  announce(db: Kysely<Tables>): Promise<void>
}

/** Calls `changed` after each reconnection, and when another process announces a change. */
export function openAnnouncements(makeClient: () => Client, changed: () => void): Announcements {
  return new Listening(makeClient, changed)
}

class Listening implements Announcements {
  /** Marks our own announcements, which need no action. */
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

  /** Resolves when the connection ends, to false if there was none. */
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
      // The caller tries again.
    }
    this.#first.resolve()
    // A frozen server never closes its side of the connection, so do not wait for it.
    void Promise.race([client.end(), pause(1_000, undefined, { ref: false })]).catch(() => undefined)
    return isListening
  }
}
