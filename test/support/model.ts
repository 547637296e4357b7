// An endpoint that stands in for a language model. It speaks the protocols of OpenAI and Anthropic over HTTP, sends the
// responses that a test sets, and records the requests.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

/**
 * A text (which may wait for `when`), a refusal, a response of a given size, no response, or a response that does not
 * end.
 */
export type Reply =
  | { readonly text: string; readonly when?: Promise<unknown> }
  | { readonly status: number; readonly retryAfterMs?: number }
  | { readonly bytes: number }
  | 'hang'
  | 'hang in the body'

interface Question {
  readonly path: string
  readonly key: string
  /** Without the headers that every HTTP request has. */
  readonly headers: Readonly<Record<string, unknown>>
  readonly instructions: string
  readonly question: string
  readonly model: string
}

export interface ModelStandIn extends AsyncDisposable {
  /** Without a path. */
  readonly url: string
  readonly asked: Question[]
  /** Sets the responses to the next requests. The last response repeats. */
  answer(...replies: readonly Reply[]): void
}

export async function startModel(): Promise<ModelStandIn> {
  const asked: Question[] = []
  let replies: Reply[] = [{ text: '{}' }]
  const server = createServer((req, res) => {
    void (async () => {
      const body = (await json(req)) as {
        readonly model: string
        readonly system?: string
        readonly messages: readonly { readonly role: string; readonly content: string }[]
      }
      const path = req.url ?? ''
      const isAnthropic = path.endsWith('/v1/messages')
      const of = (role: string) => body.messages.find((message) => message.role === role)?.content ?? ''
      const { host: _, connection: __, 'content-length': ___, ...headers } = req.headers
      asked.push({
        path,
        headers,
        key: String(req.headers['x-api-key'] ?? req.headers.authorization),
        instructions: isAnthropic ? (body.system ?? '') : of('system'),
        question: of('user'),
        model: body.model,
      })
      const reply = (replies.length > 1 ? replies.shift() : replies[0]) ?? 'hang'
      if (reply === 'hang') return
      if (reply === 'hang in the body') {
        res.writeHead(200, { 'content-type': 'application/json' })
        res.write('{"id":')
        return
      }
      if ('status' in reply) {
        const later = { 'retry-after-ms': String(reply.retryAfterMs ?? 1) }
        res.writeHead(reply.status, { 'content-type': 'application/json', ...later }).end('{"error":{"message":"no"}}')
        return
      }
      if ('text' in reply) await reply.when
      const text = 'bytes' in reply ? 'x'.repeat(reply.bytes) : reply.text
      const whole = isAnthropic
        ? { id: 'm', type: 'message', role: 'assistant', content: [{ type: 'text', text }] }
        : { id: 'm', object: 'chat.completion', choices: [{ index: 0, message: { role: 'assistant', content: text } }] }
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole))
    })()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    answer(...next) {
      replies = [...next]
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
