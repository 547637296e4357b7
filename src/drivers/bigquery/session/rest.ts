// BigQuery's REST interface as its eight calls need it: the token in front, a refused one fetched anew once, what passes
// tried again a few times. It sends whatever path and body it is given: what may be sent is decided above.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Dispatcher } from 'undici'
import { exchange, isPassing, jsonOf, Unreadable } from './exchange.ts'
import { Refused } from './refused.ts'
import type { TokenSource } from './tokens.ts'

/** After these times and up to half of each more. */
const RETRY_AFTER_MS = [100, 300, 900] as const
/** A server that says to come later than this is told of as it is. */
const PATIENCE_MS = 2_000
/** Lists, tables and dry runs: a table of 10,000 nested columns is some megabytes. */
const METADATA_BYTES_MAX = 8 * 1024 * 1024

export interface Call {
  readonly method: 'GET' | 'POST'
  /** Behind /bigquery/v2/, each part encoded. */
  readonly path: readonly string[]
  readonly query?: Readonly<Record<string, string>>
  readonly body?: object
  readonly bytesMax?: number
}

export class Rest {
  readonly #dispatcher: Dispatcher
  readonly #tokens: TokenSource | null

  /** Null: no token is ever sent. */
  constructor(dispatcher: Dispatcher, tokens: TokenSource | null) {
    this.#dispatcher = dispatcher
    this.#tokens = tokens
  }

  /** The token that calls would be made with: throws where there is none. */
  async signIn(signal: AbortSignal): Promise<void> {
    const tokens = this.#tokens
    if (tokens !== null) await tried(() => tokens.get(signal), signal)
  }

  /** An answer as JSON. Throws Refused, Unreadable, the socket's error, the signal's reason. */
  async json(call: Call, signal: AbortSignal): Promise<unknown> {
    const json = jsonOf(await this.bytes(call, signal))
    if (typeof json !== 'object' || json === null) throw new Unreadable('an answer that is no JSON object')
    return json
  }

  /**
   * An answer as it came. Throws as json() does. Where `whole` is given, `signal` ends only the retries, and an answer
   * that is under way is read on until `whole` ends it.
   */
  async bytes(call: Call, signal: AbortSignal, whole = signal): Promise<Buffer> {
    return await tried(() => this.#withToken(call, whole), signal)
  }

  async #withToken(call: Call, signal: AbortSignal): Promise<Buffer> {
    if (this.#tokens === null) return await this.#send(call, null, signal)
    const token = await this.#tokens.get(signal)
    try {
      return await this.#send(call, token, signal)
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 401) throw error
      this.#tokens.forget(token)
      return await this.#send(call, await this.#tokens.get(signal), signal)
    }
  }

  #send({ method, path, query, body, bytesMax }: Call, token: string | null, signal: AbortSignal): Promise<Buffer> {
    const search = new URLSearchParams(query).toString()
    const request = {
      method,
      path: `/bigquery/v2/${path.map(encodeURIComponent).join('/')}${search === '' ? '' : `?${search}`}`,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      bytesMax: bytesMax ?? METADATA_BYTES_MAX,
    }
    return exchange(this.#dispatcher, request, signal)
  }
}

/** The work, done again a few times while what it fails of may pass. */
async function tried<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  for (let attempt = 0; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      const pause = RETRY_AFTER_MS[attempt]
      if (pause === undefined || signal.aborted || !isPassing(error)) throw error
      const asked = error instanceof Refused ? (error.retryAfterMs ?? 0) : 0
      if (asked > PATIENCE_MS) throw error
      await sleep(Math.max(asked, pause * (1 + Math.random() / 2)), undefined, { signal })
    }
  }
}
