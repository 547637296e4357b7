// One HTTP request to an address that somebody else may have named: the metadata document of an OAuth client, the
// endpoints of a sign-in provider. Connects to checked addresses only, follows no redirect, and bounds time and size.
import { request as requestPlain, type IncomingMessage } from 'node:http'
import { request as requestSecure, type RequestOptions } from 'node:https'
import { connect } from 'node:tls'
import { deadlineOf } from '../deadline.ts'
import type { dial } from '../drivers/address.ts'

/** How to reach a host. Tests reach their own server. */
export interface Transport {
  readonly dial: (at: { readonly host: string; readonly port: number }, signal: AbortSignal) => ReturnType<typeof dial>
  /** The only certificates to trust. If absent: those that Node trusts. */
  readonly ca?: string
  readonly deadlineMs?: number
}

export interface Outgoing {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** Makes the request a POST. */
  readonly body?: string
  readonly bytesMax: number
  readonly headerBytesMax: number
}

export interface Incoming {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

const DEADLINE_MS = 5_000

/** Throws an Error for a refused address, a failed connection, a late or too large answer, and text that is not UTF-8. */
export async function sendOut(
  transport: Transport,
  { url, headers, body, bytesMax, headerBytesMax }: Outgoing,
): Promise<Incoming> {
  using deadline = deadlineOf(new AbortController().signal, transport.deadlineMs ?? DEADLINE_MS)
  const { signal } = deadline
  const isSecure = url.protocol === 'https:'
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = url.port === '' ? (isSecure ? 443 : 80) : Number(url.port)
  const socket = await transport.dial({ host, port }, signal)
  try {
    const { ca } = transport
    const connection = isSecure ? connect({ socket, servername: host, ...(ca === undefined ? {} : { ca }) }) : socket
    const options: RequestOptions = {
      method: body === undefined ? 'GET' : 'POST',
      // Only without an agent does Node use this connection: an agent would open its own, to any address.
      createConnection: () => connection,
      headers: {
        ...headers,
        host: url.host,
        connection: 'close',
        ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
      },
      maxHeaderSize: headerBytesMax,
      signal,
    }
    const response = await answerOf(isSecure ? requestSecure : requestPlain, url, options, body)
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      text: await textOf(response, bytesMax, signal),
    }
  } finally {
    socket.destroy()
  }
}

function answerOf(
  request: typeof requestSecure,
  url: URL,
  options: RequestOptions,
  body: string | undefined,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request(url, options, resolve).once('error', reject).end(body)
  })
}

async function textOf(response: IncomingMessage, bytesMax: number, signal: AbortSignal): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of response) {
    signal.throwIfAborted()
    if (!Buffer.isBuffer(part)) throw new TypeError('a response has bytes')
    bytes += part.length
    if (bytes > bytesMax) throw new Error('the answer is too large')
    parts.push(part)
  }
  return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts))
}
