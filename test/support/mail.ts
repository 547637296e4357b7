// A real SMTP server in this process, which keeps the mail that it receives: `await using smtp = await startSmtp()`,
// then SMTP_URL: smtp.url.
import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

export interface Received {
  readonly from: string
  readonly to: readonly string[]
  /** The headers as they were sent, with folded lines. */
  readonly headers: string
  readonly text: string
  readonly html: string
}

export interface TestSmtp extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly received: readonly Received[]
  /** Waits for the next unread mail to this address. If `about` is given, the text must match. */
  next(to: string, about?: RegExp): Promise<Received>
}

/** By default, accepts every mail without a login. */
export async function startSmtp(options: SMTPServerOptions = {}): Promise<TestSmtp> {
  const received: Received[] = []
  const read = new Set<Received>()
  const news = new EventTarget()
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    logger: false,
    onData(stream, session, done) {
      void buffer(stream).then((bytes) => {
        const { mailFrom, rcptTo } = session.envelope
        received.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map((each) => each.address),
          ...partsOf(bytes.toString('utf8')),
        })
        news.dispatchEvent(new Event('mail'))
        done()
      })
    },
    ...options,
  })
  // A client that does not trust the certificate disconnects. Its test checks the outcome.
  server.on('error', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const address = server.server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `smtp://127.0.0.1:${port}`,
    port,
    received,
    async next(to, about = /^/) {
      for (;;) {
        const found = received.find((mail) => mail.to.includes(to) && !read.has(mail) && about.test(mail.text))
        if (found !== undefined) {
          read.add(found)
          return found
        }
        await once(news, 'mail', { signal: AbortSignal.timeout(60_000) })
      }
    },
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

export const LINK = /[?&]token=/

/** Throws an Error if the mail has no link with a token. */
export function tokenIn(mail: Pick<Received, 'text'>): string {
  const token = /[?&]token=([\w.~-]+)/.exec(mail.text)?.[1]
  if (token === undefined) throw new Error(`no token in: ${mail.text}`)
  return token
}

function partsOf(message: string): Pick<Received, 'headers' | 'text' | 'html'> {
  const [headers = '', body = ''] = split(message)
  const boundary = /boundary="([^"]+)"/.exec(headers)?.[1] ?? ''
  const parts = new Map(
    body.split(`--${boundary}`).flatMap((part) => {
      const [head = '', content = ''] = split(part.replace(/^\r\n/, ''))
      const type = /content-type: ([\w/]+)/i.exec(head)?.[1]
      return type === undefined ? [] : [[type, decode(head, content)] as const]
    }),
  )
  return { headers, text: parts.get('text/plain') ?? '', html: parts.get('text/html') ?? '' }
}

function split(text: string): [string, string] {
  const at = text.indexOf('\r\n\r\n')
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 4)]
}

function decode(head: string, content: string): string {
  if (/content-transfer-encoding: base64/i.test(head)) return Buffer.from(content, 'base64').toString('utf8')
  if (!/content-transfer-encoding: quoted-printable/i.test(head)) return content
  const bytes = content
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('utf8')
}
