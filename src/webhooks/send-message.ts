// Sends one message, signed by the rules of standardwebhooks.com. It connects only to an allowed address, follows no
// redirect and reads no body, so that nobody can explore this service's network with a webhook.
import { createHmac } from 'node:crypto'
import { deadlineOf } from '../deadline.ts'
import { AppError } from '../errors.ts'
import { dialing, exchange } from '../outbound-request.ts'

export interface Outgoing {
  readonly id: string
  readonly url: string
  /** `whsec_` and the key in base64. */
  readonly secret: string
  readonly body: string
}

export interface SendOptions {
  /** If true, http:// is allowed too. */
  readonly allowPrivateHosts: boolean
  readonly now: () => number
  /** The only trusted certificate, for tests. If missing, Node's certificates are trusted. */
  readonly ca?: string
}

export interface Sent {
  readonly delivered: boolean
  /** Null if there was no answer. */
  readonly status: number | null
  readonly error: string | null
}

const DEADLINE_MS = 10_000
const HEADER_BYTES_MAX = 16 * 1024

/** Throws only the reason of `signal`. Other errors are in the result. */
export async function send(message: Outgoing, options: SendOptions, signal: AbortSignal): Promise<Sent> {
  using deadline = deadlineOf(signal, DEADLINE_MS)
  try {
    const status = await statusOf(message, options, deadline.signal)
    const delivered = status >= 200 && status < 300
    return { delivered, status, error: delivered ? null : `The receiver answered with the status ${status}.` }
  } catch (error) {
    signal.throwIfAborted()
    return { delivered: false, status: null, error: deadline.timedOut ? LATE : sentenceOf(error) }
  }
}

const LATE = 'The receiver did not answer within 10 seconds.'

async function statusOf(message: Outgoing, options: SendOptions, signal: AbortSignal): Promise<number> {
  const url = new URL(message.url)
  const { allowPrivateHosts, ca } = options
  if (url.protocol !== 'https:' && !allowPrivateHosts)
    throw new AppError('INVALID_REQUEST', 'The address must be https://.')
  const transport = { dial: dialing(() => allowPrivateHosts), ...(ca !== undefined && { ca }) }
  const outgoing = {
    url,
    headers: headersOf(message, options.now()),
    body: message.body,
    headerBytesMax: HEADER_BYTES_MAX,
  }
  return await exchange(transport, outgoing, signal, ({ statusCode = 0 }) => statusCode)
}

function headersOf({ id, body, secret }: Outgoing, now: number): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(now / 1000))
  return {
    'content-type': 'application/json',
    'user-agent': 'Vitrine',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signatureOf(secret, id, timestamp, body)}`,
  }
}

function signatureOf(secret: string, id: string, timestamp: string, body: string): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
}

/** Returns our own sentence, because other error texts may reveal something about the network. */
function sentenceOf(error: unknown): string {
  if (error instanceof AppError) return error.message
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'The host of the receiver has no address.'
  if (/^(CERT_|ERR_TLS_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO)/.test(code))
    return 'The certificate of the receiver is not valid.'
  return 'The receiver cannot be reached.'
}
