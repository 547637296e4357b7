// The sockets to BigQuery: one pool of keep-alive connections for each origin. Several holders share a pool, and the
// last holder closes it. A socket connects only to an address that was checked.
import { isIP } from 'node:net'
import type { Dispatcher, Pool, buildConnector } from 'undici'
import { bareHost } from '../../../host-names.ts'
import { AppError } from '../../../errors.ts'
import { checkedLookup, refusal } from '../../allowed-addresses.ts'

/** Tests replace it, to stand in for Google's servers. */
export type Connector = buildConnector.connector

/** Disposing it gives up the pool. */
export interface Held extends AsyncDisposable {
  readonly dispatcher: Dispatcher
}

const CONNECT_MS = 8_000
const KEEP_ALIVE_MS = 55_000
/**
 * The timeout if a server sends nothing. It does not depend on the caller's deadline, because no request lets BigQuery
 * wait for more than 10 seconds before it answers.
 */
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

  /** Throws AppError DATASOURCE_UNAVAILABLE if the host is an IP address that is not allowed. */
  async hold(origin: string, allowPrivateHosts: boolean): Promise<Held> {
    const host = bareHost(new URL(origin).hostname)
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

/** The first call loads undici. Timeouts that are not set here come from the signal of a request. */
async function openPool(origin: string, allowPrivateHosts: boolean, connector: Connector | null): Promise<Pool> {
  const { Pool, buildConnector } = await import('undici')
  return new Pool(origin, {
    connect:
      connector ??
      buildConnector({
        lookup: checkedLookup(allowPrivateHosts),
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
