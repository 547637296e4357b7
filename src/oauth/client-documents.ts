// Reads client metadata documents (draft-ietf-oauth-client-id-metadata-document). The id of such a client is the https
// URL of a JSON document about it. Anybody can send a URL, so documents are read only from public IP addresses and
// without redirects, and they may take at most 5 KiB and 5 seconds. Documents are cached.
import { z } from 'zod'
import { BoundedMap } from '../bounded-map.ts'
import { openFairLimit } from '../concurrency-limit.ts'
import { dial } from '../drivers/allowed-addresses.ts'
import { sendOut, type Transport } from '../outbound-request.ts'
import type { Client } from './client.ts'
import { verdictOf } from './redirect-uris.ts'

export interface ClientDocuments {
  /**
   * Returns null if the document cannot be read or is not valid. `key` stands for the caller, for example its network.
   * Only a few reads with the same key run at the same time. A further read waits for up to five seconds.
   */
  read(id: string, key: string): Promise<Client | null>
}

export type DocumentTransport = Transport

const PUBLIC_ONLY: DocumentTransport = {
  dial: (at, signal) => dial({ ...at, namedByStranger: true }, false, signal),
}

const SIZE_MAX = { bytesMax: 5 * 1024, headerBytesMax: 8 * 1024 }
/**
 * The maximum number of concurrent reads, for each key and in total. Without this limit, callers could use this service
 * to flood other hosts. A silent host blocks one read for five seconds, so a single caller gets only a few.
 */
const READS = { each: 2, all: 32 }
const READS_WAIT_MS = 5_000
const CACHED_MAX = 500
/** The headers of the document may set a time between `min` and `max`. */
const FRESH_MS = { min: 60_000, default: 300_000, max: 3_600_000 }
const FAILED_MS = 30_000
const NAME_MAX = 100

const Document = z.object({
  client_id: z.string(),
  client_name: z.string().optional(),
  redirect_uris: z.array(z.string()).min(1).max(20),
  token_endpoint_auth_method: z.literal('none').optional(),
  grant_types: z.array(z.string()).optional(),
  response_types: z.array(z.string()).optional(),
})

interface Held {
  readonly client: Promise<Client | null>
  until: number
}

export function openClientDocuments(
  transport: DocumentTransport = PUBLIC_ONLY,
  now: () => number = Date.now,
): ClientDocuments {
  const held = new BoundedMap<string, Held>(CACHED_MAX)
  const places = openFairLimit(READS)
  const fresh = (id: string): Promise<Client | null> | null => {
    const known = held.get(id)
    return known !== undefined && known.until > now() ? known.client : null
  }
  const load = async (id: string, entry: { until: number }): Promise<Client | null> => {
    try {
      const { text, freshMs } = await fetchDocument(new URL(id), transport)
      entry.until = now() + freshMs
      return clientOf(id, text)
    } catch {
      // Do not tell the caller the reason: it would reveal which hosts this service can reach.
      entry.until = now() + FAILED_MS
      return null
    }
  }
  return {
    async read(id, key) {
      const known = fresh(id)
      if (known !== null) return await known
      using place = await places.take(key, { waitMs: READS_WAIT_MS })
      // Do not cache this failure. The next request may succeed.
      if (place === null) return null
      // Join a read that has begun. A read that still waits is not shared, so no caller waits for the reads of another.
      const begun = fresh(id)
      if (begun !== null) return await begun
      const entry = { until: Infinity }
      const client = load(id, entry)
      held.set(id, Object.assign(entry, { client }))
      return await client
    },
  }
}

/** Throws if the document is about another client, or about a client that this service does not support. */
function clientOf(id: string, text: string): Client {
  const document = Document.parse(JSON.parse(text))
  const { client_name: name, redirect_uris: uris, grant_types: grants, response_types: types } = document
  if (document.client_id !== id) throw new Error('the document is about another client')
  if (grants?.includes('authorization_code') === false || types?.includes('code') === false) {
    throw new Error('the client uses another grant')
  }
  const verdicts = uris.map(verdictOf)
  const redirectUris = uris.filter((_, n) => verdicts[n] === 'ok')
  if (verdicts.includes('refused') || redirectUris.length === 0) throw new Error('a redirect URI is not allowed')
  const host = new URL(id).hostname
  return { id, name: shortName(name) ?? host, host, redirectUris }
}

/** Returns null if the name has no visible character. */
export function shortName(name: string | undefined): string | null {
  const plain = (name ?? '').replaceAll(/[\p{C}\p{Z}]+/gu, ' ').trim()
  if (plain === '') return null
  return plain.length > NAME_MAX ? `${plain.slice(0, NAME_MAX).toWellFormed()}…` : plain
}

async function fetchDocument(url: URL, transport: DocumentTransport): Promise<{ text: string; freshMs: number }> {
  const headers = { accept: 'application/json' }
  const answer = await sendOut(transport, { url, headers, ...SIZE_MAX })
  const type = answer.headers['content-type'] ?? ''
  if (answer.status !== 200 || !/^application\/([\w.-]+\+)?json\b/i.test(type)) throw new Error('no document')
  return { text: answer.text, freshMs: freshMsOf(answer.headers['cache-control']) }
}

function freshMsOf(cacheControl: string | undefined): number {
  if (/\bno-(store|cache)\b/i.test(cacheControl ?? '')) return FRESH_MS.min
  const seconds = /\bmax-age=(\d{1,9})\b/i.exec(cacheControl ?? '')?.[1]
  if (seconds === undefined) return FRESH_MS.default
  return Math.min(FRESH_MS.max, Math.max(FRESH_MS.min, Number(seconds) * 1000))
}
