// Calls BigQuery's REST API. Adds the token, fetches a new one after a 401 (once), and retries temporary errors. Paths
// and bodies are not checked here, because the callers decide what may be sent.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Dispatcher } from 'undici'
import { sendRequest, isTemporary, jsonOf, Unreadable } from './http-exchange.ts'
import { ErrorResponse } from './error-response.ts'
import type { TokenSource } from './access-tokens.ts'

/** The pauses before the retries. Up to half of a pause is added at random. */
const RETRY_AFTER_MS = [100, 300, 900] as const
/** If Retry-After demands a longer pause, the call fails. */
const PATIENCE_MS = 2_000
/**
 * The limit for a response with a list, a table or a dry run. A table of 10,000 nested columns takes several megabytes.
 */
const METADATA_BYTES_MAX = 8 * 1024 * 1024

export interface Call {
  readonly method: 'GET' | 'POST'
  /** The parts after /bigquery/v2/. Each part is URL-encoded. */
  readonly path: readonly string[]
  readonly query?: Readonly<Record<string, string>>
  readonly body?: object
  readonly bytesMax?: number
}

export class Rest {
  readonly #dispatcher: Dispatcher
  readonly #tokens: TokenSource | null

  constructor(dispatcher: Dispatcher, tokens: TokenSource | null) {
    this.#dispatcher = dispatcher
    this.#tokens = tokens
  }

  /** Fetches a token. Throws if there is none. */
  async signIn(signal: AbortSignal): Promise<void> {
    const tokens = this.#tokens
    if (tokens !== null) await withRetries(() => tokens.get(signal), signal)
  }

  /** Throws AppError, ErrorResponse, Unreadable, the error of the socket, or the signal's reason. */
  async json(call: Call, signal: AbortSignal): Promise<unknown> {
    const json = jsonOf(await this.bytes(call, signal))
    if (typeof json !== 'object' || json === null) throw new Unreadable('a response that is not a JSON object')
    return json
  }

  /**
   * Throws the errors of json(). If `whole` is given, `signal` ends only the retries: a request that was sent goes on
   * until `whole` aborts.
   */
  async bytes(call: Call, signal: AbortSignal, whole = signal): Promise<Buffer> {
    return await withRetries(() => this.#withToken(call, whole), signal)
  }

  async #withToken(call: Call, signal: AbortSignal): Promise<Buffer> {
    if (this.#tokens === null) return await this.#send(call, null, signal)
    const token = await this.#tokens.get(signal)
    try {
      return await this.#send(call, token, signal)
    } catch (error) {
      if (!(error instanceof ErrorResponse) || error.status !== 401) throw error
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
    return sendRequest(this.#dispatcher, request, signal)
  }
}

/** Retries a few times after a temporary error. */
async function withRetries<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  for (let attempt = 0; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      const pause = RETRY_AFTER_MS[attempt]
      if (pause === undefined || signal.aborted || !isTemporary(error)) throw error
      const retryAfterMs = error instanceof ErrorResponse ? (error.retryAfterMs ?? 0) : 0
      if (retryAfterMs > PATIENCE_MS) throw error
      await sleep(Math.max(retryAfterMs, pause * (1 + Math.random() / 2)), undefined, { signal })
    }
  }
}
