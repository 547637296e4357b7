#!/usr/bin/env node
// The stdio bridge to a Vitrine service. It reads JSON-RPC messages from stdin, one per line, sends them to POST /mcp,
// and writes the answers to stdout. It has no dependencies and stores no data. Messages for people are written to
// stderr.
import { createInterface } from 'node:readline'

const VERSION = '0.1.0'
const USAGE = `Usage: vitrine-connector

Connects an agent that starts MCP servers as commands (stdio) to a Vitrine service.
The settings are environment variables:

  VITRINE_URL   the address of the service, for example https://vitrine.example.com
  VITRINE_KEY   an API key (sk_live_…), made under /users/me/keys

  --help        prints this help
  --version     prints the version
`
const MODERN_META = 'io.modelcontextprotocol/protocolVersion'
const NAMED_BY = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' }
/** The maximum length of a message, in characters. The service accepts requests of at most 1 MiB. */
const LINE_CHARS_MAX = 4 << 20
/** How long the bridge waits for answers after the client has closed stdin. */
const LAST_ANSWERS_MS = 2_000

const [argument] = process.argv.slice(2)
if (argument === '--help' || argument === '-h') process.stdout.write(USAGE)
else if (argument === '--version' || argument === '-v') process.stdout.write(`${VERSION}\n`)
else if (argument !== undefined) stop(`Unknown argument ${JSON.stringify(argument)}.\n\n${USAGE}`, 2)
else serve(readSettings(process.env))

function readSettings({ VITRINE_URL = '', VITRINE_KEY = '' }) {
  const url = URL.parse(VITRINE_URL)
  if (url === null || !/^https?:$/.test(url.protocol)) {
    return stop('Set VITRINE_URL to the address of your Vitrine, for example https://vitrine.example.com.\n', 2)
  }
  if (!VITRINE_KEY.startsWith('sk_live_')) return stop('Set VITRINE_KEY to an API key. It starts with sk_live_.\n', 2)
  const isLoopback = ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname)
  if (url.protocol === 'http:' && !isLoopback) {
    process.stderr.write('VITRINE_URL is http: the key and all rows are sent unencrypted.\n')
  }
  const path = url.pathname.replace(/\/+$/, '')
  return { endpoint: `${url.origin}${path.endsWith('/mcp') ? path : `${path}/mcp`}`, key: VITRINE_KEY }
}

function stop(text, code) {
  process.stderr.write(text)
  process.exit(code)
}

function serve({ endpoint, key }) {
  /** The protocol version from `initialize`. Newer clients name the version in each message. */
  const session = { version: undefined, client: undefined }
  /** Requests in progress, by id. */
  const running = new Map()
  const write = (message) => process.stdout.write(`${JSON.stringify(message)}\n`)
  const lines = createInterface({ input: process.stdin, crlfDelay: Infinity })
  lines.on('line', (line) => {
    if (line.trim() === '') return
    const message = parsed(line)
    if (message === undefined) return write(errorFor(null, -32700, 'This line is not valid JSON.'))
    if (message?.method === 'notifications/cancelled') {
      // Over HTTP, a client cancels by closing the connection.
      return running.get(message.params?.requestId)?.abort()
    }
    void forward({ endpoint, key, session, running, write }, message)
  })
  lines.on('close', () => {
    // Answers that arrive soon are still written. Other requests are aborted, so the service cancels their queries.
    setTimeout(() => {
      for (const gone of running.values()) gone.abort()
      process.exit(0)
    }, LAST_ANSWERS_MS).unref()
  })
}

async function forward({ endpoint, key, session, running, write }, message) {
  const id = message?.id ?? null
  const gone = new AbortController()
  if (id !== null) running.set(id, gone)
  try {
    if (message?.method === 'initialize') session.client = nameOf(message.params?.clientInfo)
    const response = await fetch(endpoint, {
      method: 'POST',
      headers: headersFor(message, key, session),
      body: JSON.stringify(message),
      signal: gone.signal,
      redirect: 'error',
    })
    for await (const answer of answersOf(response)) {
      if (message?.method === 'initialize' && answer.result !== undefined) {
        session.version = answer.result.protocolVersion
      }
      if (response.status === 401) process.stderr.write(`${WRONG_KEY}\n`)
      const isAnswer = answer.error !== undefined && answer.id === null
      if (id !== null || answer.id !== null)
        write(isAnswer ? { ...answer, id, error: explained(response, answer.error) } : answer)
    }
  } catch (error) {
    // A cancelled request gets no answer.
    if (gone.signal.aborted) return
    const text = `Vitrine cannot be reached at ${endpoint}: ${reasonOf(error)}. Check VITRINE_URL, and that the service runs.`
    process.stderr.write(`${text}\n`)
    if (id !== null) write(errorFor(id, -32000, text))
  } finally {
    if (running.get(id) === gone) running.delete(id)
  }
}

function headersFor(message, key, { version, client }) {
  const meta = message?.params?._meta?.[MODERN_META]
  const named = message?.params?.[NAMED_BY[message?.method] ?? '']
  return {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'user-agent': `vitrine-connector/${VERSION}${client === undefined ? '' : ` (${client})`}`,
    ...((meta ?? version) !== undefined &&
      message?.method !== 'initialize' && { 'mcp-protocol-version': headerText(meta ?? version) }),
    ...(meta !== undefined && typeof message.method === 'string' && { 'mcp-method': headerText(message.method) }),
    ...(meta !== undefined && typeof named === 'string' && { 'mcp-name': headerText(named) }),
  }
}

/** Encodes a text for a header, which must be ASCII. Other texts are sent in the encoding that the protocol defines. */
function headerText(text) {
  const value = String(text)
  if (/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value) && !value.startsWith('=?base64?')) return value
  return `=?base64?${Buffer.from(value).toString('base64')}?=`
}

/** Returns the messages in a response: one in JSON, several in an event stream, none for a notification. */
async function* answersOf(response) {
  const type = response.headers.get('content-type') ?? ''
  if (!type.startsWith('text/event-stream')) {
    const text = await response.text()
    if (text === '') return
    const message = parsed(text)
    if (message?.jsonrpc === '2.0') yield message
    else
      yield errorFor(
        null,
        -32000,
        `The service answered with status ${response.status} and without a message. Check VITRINE_URL.`,
      )
    return
  }
  let rest = ''
  const decoder = new TextDecoder()
  for await (const part of response.body) {
    rest += decoder.decode(part, { stream: true })
    const events = rest.split(/\r?\n\r?\n/)
    rest = events.pop() ?? ''
    for (const event of events) {
      const data = [...event.matchAll(/^data: ?(.*)$/gm)].map(([, text]) => text).join('\n')
      const message = parsed(data)
      if (message !== undefined) yield message
    }
  }
}

const WRONG_KEY =
  'The key in VITRINE_KEY is not valid: it is mistyped, revoked or expired. Create a new key and set VITRINE_KEY.'

function explained({ status }, error) {
  return status === 401 ? { ...error, message: WRONG_KEY } : error
}

function errorFor(id, code, message) {
  return { jsonrpc: '2.0', id, error: { code, message } }
}

function reasonOf(error) {
  return String(error?.cause?.message ?? error?.cause?.code ?? error?.message ?? error)
}

function nameOf(info) {
  if (typeof info?.name !== 'string' || typeof info?.version !== 'string') return undefined
  return `${info.name}/${info.version}`.replaceAll(/[^\x20-\x7e]|[()]/g, '').slice(0, 100)
}

function parsed(text) {
  if (text.length > LINE_CHARS_MAX) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
