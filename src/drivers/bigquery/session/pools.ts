// The sockets to BigQuery: one pool of keep-alive connections for each origin, shared by the leases that use it and closed
// with the last of them. A socket goes only to an address that was judged.
import { isIP } from 'node:net'
import type { Dispatcher, Pool, buildConnector } from 'undici'
import { AppError } from '../../../errors.ts'
import { judgedLookup, refusal } from '../../address.ts'

/** Opens the socket for a request; tests lead Google's addresses to their double by it. */
export type Connector = buildConnector.connector

/** An origin's sockets while somebody holds them. */
export interface Held extends AsyncDisposable {
  readonly dispatcher: Dispatcher
}

const CONNECT_MS = 8_000
const KEEP_ALIVE_MS = 55_000
/** A server that sends nothing for so long is given up, whatever time the caller has: a wait of ours is 10 seconds at most. */
const SILENT_MS = 60_000
const HEADERS_BYTES_MAX = 32 * 1024

interface Entry {
  readonly pool: Promise<Pool>
  holders: number
}

export class Pools implements AsyncDisposable {
  readonly #connector: Connector | null
  readonly #entries = new Map<string, Entry>()

  constructor(connector: Connector | null) {
    this.#connector = connector
  }

  /** Throws AppError DATASOURCE_UNAVAILABLE for an origin that is a refused address. */
  async hold(origin: string, allowPrivateHosts: boolean): Promise<Held> {
    const host = new URL(origin).hostname.replace(/^\[|\]$/g, '')
    const sentence = isIP(host) === 0 ? null : refusal(host, allowPrivateHosts)
    if (sentence !== null) throw new AppError('DATASOURCE_UNAVAILABLE', sentence)
    const key = `${origin} ${allowPrivateHosts}`
    const entry = this.#entries.get(key) ?? { pool: openPool(origin, allowPrivateHosts, this.#connector), holders: 0 }
    this.#entries.set(key, entry)
    entry.holders++
    let given = false
    const giveBack = async (): Promise<void> => {
      if (given) return
      given = true
      if (--entry.holders > 0) return
      this.#entries.delete(key)
      await (await entry.pool).destroy()
    }
    return { dispatcher: await entry.pool, [Symbol.asyncDispose]: giveBack }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const entries = [...this.#entries.values()]
    this.#entries.clear()
    await Promise.all(entries.map(async ({ pool }) => (await pool).destroy()))
  }
}

/** undici is loaded by the first connection. Other times are the callers': each request brings a signal. */
async function openPool(origin: string, allowPrivateHosts: boolean, connector: Connector | null): Promise<Pool> {
  const { Pool, buildConnector } = await import('undici')
  return new Pool(origin, {
    connect:
      connector ??
      buildConnector({
        lookup: judgedLookup(allowPrivateHosts),
        timeout: CONNECT_MS,
        allowH2: false,
        keepAlive: true,
      }),
    allowH2: false,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    headersTimeout: SILENT_MS,
    bodyTimeout: SILENT_MS,
    maxHeaderSize: HEADERS_BYTES_MAX,
  })
}
