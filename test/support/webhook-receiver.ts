// A real HTTP or HTTPS server that receives webhooks. It keeps the messages, and answers with a status that the test
// chooses.
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export interface Received {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export interface Receiver extends AsyncDisposable {
  readonly port: number
  readonly url: string
  readonly received: readonly Received[]
  status: number
  /** Headers that are added to the answers. */
  headers: Readonly<Record<string, string>>
}

/** `tls` has the key and the certificate for `localhost` in PEM. */
export async function startReceiver(tls?: { readonly key: string; readonly cert: string }): Promise<Receiver> {
  const received: Received[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    received.push({ path: request.url ?? '', headers: request.headers, body: await text(request) })
    response.writeHead(receiver.status, receiver.headers).end()
  }
  const handle = (request: IncomingMessage, response: ServerResponse) => void answer(request, response)
  const server = tls === undefined ? createServer(handle) : createSecureServer(tls, handle)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const receiver: Receiver = {
    port,
    url: tls === undefined ? `http://127.0.0.1:${port}/hook?token=secret-in-path` : `https://localhost:${port}/hook`,
    received,
    status: 204,
    headers: {},
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return receiver
}

/** Checks the signature that standardwebhooks.com specifies. */
export function isSigned({ headers, body }: Received, secret: string): boolean {
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  return headers['webhook-signature'] === `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
}
