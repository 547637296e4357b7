// Sends requests to URLs that a stranger may have chosen: the metadata document of an OAuth client, an endpoint of a
// sign-in provider, the receiver of a webhook. It connects only to IP addresses that were checked, follows no redirect,
// and limits time and size.
import { request as requestPlain, type IncomingMessage } from 'node:http'
import { request as requestSecure, type RequestOptions } from 'node:https'
import { isIP, type Socket } from 'node:net'
import { connect } from 'node:tls'
import { bareHost } from './host-names.ts'
import { deadlineOf } from './deadline.ts'
import { endHttpParsing } from './end-http-parsing.ts'
import { dial } from './drivers/allowed-addresses.ts'

/** Tests connect to their own server. */
export interface Transport {
  readonly dial: (at: { readonly host: string; readonly port: number }, signal: AbortSignal) => ReturnType<typeof dial>
  /** The only trusted certificate. If missing, Node's certificates are trusted. */
  readonly ca?: string
  readonly deadlineMs?: number
}

export interface Outgoing {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly headerBytesMax: number
}

export interface Incoming {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

const DEADLINE_MS = 5_000
/** Without a limit of interim answers (1xx), parsing them until the deadline would take half of the CPU time. */
const INTERIM_MAX = 8

/**
 * Connects to private addresses only for hosts that `mayBePrivate` accepts, and never to the metadata service of a
 * cloud.
 */
export function dialing(mayBePrivate: (host: string) => boolean): Transport['dial'] {
  return (at, signal) => dial(at, mayBePrivate(at.host), signal)
}

/** Throws an Error if the address is not allowed, or if the answer is missing, late, too large or not UTF-8. */
export async function sendOut(
  transport: Transport,
  { bytesMax, ...outgoing }: Outgoing & { readonly bytesMax: number },
): Promise<Incoming> {
  using deadline = deadlineOf(new AbortController().signal, transport.deadlineMs ?? DEADLINE_MS)
  const { signal } = deadline
  return await exchange(transport, outgoing, signal, async (response) => ({
    status: response.statusCode ?? 0,
    headers: response.headers,
    text: await textOf(response, bytesMax, signal),
  }))
}

/** Passes the response to `read`, and closes the connection when `read` has ended. Throws the errors of sendOut(). */
export async function exchange<T>(
  { dial, ca }: Pick<Transport, 'dial' | 'ca'>,
  { url, headers, body, headerBytesMax }: Outgoing,
  signal: AbortSignal,
  read: (response: IncomingMessage) => T | Promise<T>,
): Promise<T> {
  const isSecure = url.protocol === 'https:'
  const host = bareHost(url.hostname)
  const port = url.port === '' ? (isSecure ? 443 : 80) : Number(url.port)
  const socket = await dial({ host, port }, signal)
  try {
    const connection = isSecure ? secured(socket, host, ca) : socket
    const options: RequestOptions = {
      method: body === undefined ? 'GET' : 'POST',
      // Without an agent, Node uses this connection. An agent would connect again, to an address that was not checked.
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
    return await read(await answerOf(isSecure ? requestSecure : requestPlain, url, options, body))
  } finally {
    socket.destroy()
  }
}

/** The certificate must be for the host. TLS allows no IP address as the server name (RFC 6066, section 3). */
function secured(socket: Socket, host: string, ca: string | undefined): Socket {
  return connect({ socket, host, ...(isIP(host) === 0 && { servername: host }), ...(ca !== undefined && { ca }) })
}

function answerOf(
  request: typeof requestSecure,
  url: URL,
  options: RequestOptions,
  body: string | undefined,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request(url, options, resolve)
    sent.on('error', reject)
    let interim = 0
    sent.on('information', () => {
      if (++interim <= INTERIM_MAX) return
      reject(new Error('there are too many interim answers'))
      if (sent.socket !== null) endHttpParsing(sent.socket)
    })
    // After a 101 answer, Node closes the connection without an error and without a response.
    sent.once('close', () => reject(new Error('the connection was closed without an answer')))
    sent.end(body)
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
