// The demo of a first `npm start`: a shop in a real PostgreSQL beside the service, connected through the service's own
// door as a person would, and three lines to paste. It uses no room and no store, only what every client may.
import { readFile, writeFile } from 'node:fs/promises'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { z } from 'zod'
import exposure from '../demo/exposure.json' with { type: 'json' }
import { DEMO_EMAIL } from './config.ts'
import { startDemoServer, type DemoServer } from '../demo/server.ts'

export interface DemoOptions {
  /** Where the service listens, http://127.0.0.1:3000. */
  readonly address: string
  readonly dataDir: string
  /** What the first account of a service that others reach must send. */
  readonly setupToken: string | null
  /** The store holds no account yet. */
  readonly isNew: boolean
  /** Who signs up must follow a link in a mail first. */
  readonly asksMail: boolean
  readonly signal: AbortSignal
}

/** What the first start made, kept in the data folder with mode 0600: it holds a password and a key. */
const Kept = z.object({
  email: z.string(),
  password: z.string(),
  key: z.string(),
  teamId: z.string(),
  datasourceId: z.string(),
  port: z.number(),
})
type Kept = z.infer<typeof Kept>

export interface Demo extends AsyncDisposable {
  /** What a newcomer is shown. */
  readonly story: string
}

/**
 * Starts the shop's server; connects it at the first start. Null where the store is already in use without a demo.
 * Throws an Error of one sentence where the server cannot run here or the service refuses a step.
 */
export async function openDemo(options: DemoOptions): Promise<Demo | null> {
  const file = join(options.dataDir, 'demo.json')
  const before = await readKept(file)
  if (before === null && !options.isNew) return null
  if (before === null && options.asksMail) {
    throw new Error('its account would have to answer a mail. Start without SMTP_URL to see it.')
  }
  await using stack = new AsyncDisposableStack()
  const shop = stack.use(await startDemoServer({ dataDir: options.dataDir, signal: options.signal }))
  const kept = before === null ? await connect(options, shop) : await moved(options, before, shop)
  if (kept !== before) await writeFile(file, JSON.stringify(kept, null, 2), { mode: 0o600 })
  const held = stack.move()
  return { story: storyOf(options.address, kept), [Symbol.asyncDispose]: () => held.disposeAsync() }
}

async function readKept(file: string): Promise<Kept | null> {
  try {
    return Kept.parse(JSON.parse(await readFile(file, 'utf8')))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw new Error(`${file} cannot be read; remove it to start without the demo`, { cause: error })
  }
}

/** One request through the door. Throws an Error that names the step, never what was sent. */
async function ask(options: DemoOptions, step: Step): Promise<Answer> {
  const { method = 'POST', path, body, token, cookie } = step
  const res = await fetch(options.address + path, {
    method,
    signal: options.signal,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(cookie !== undefined && { cookie }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await res.text()
  if (!res.ok) throw new Error(`the demo could not be made: ${method} ${path} answered ${res.status} ${text}`)
  const json: unknown = text === '' ? {} : JSON.parse(text)
  return { json: Fields.parse(json), cookie: cookieOf(res) }
}

interface Step {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH'
  readonly path: string
  readonly body?: unknown
  readonly token?: string
  readonly cookie?: string
}

/** Of an answer, what the next step needs. */
const Fields = z.object({ id: z.string().optional(), key: z.string().optional(), token: z.string().optional() }).loose()
interface Answer {
  readonly json: z.infer<typeof Fields>
  readonly cookie: string
}

function cookieOf(res: Response): string {
  return res.headers
    .getSetCookie()
    .map((line) => line.split(';', 1)[0])
    .join('; ')
}

function have(value: string | undefined, what: string): string {
  if (value === undefined) throw new Error(`the demo could not be made: no ${what} in an answer`)
  return value
}

/** The first start: account, team, datasource, exposure, key. */
async function connect(options: DemoOptions, shop: DemoServer): Promise<Kept> {
  const email = DEMO_EMAIL
  const password = randomBytes(12).toString('base64url')
  const person = { name: 'Demo', email, password }
  const { setupToken } = options
  const signedUp = await ask(options, {
    path: '/auth/sign-up/email',
    body: setupToken === null ? person : { ...person, setupToken },
  })
  const token = await tokenOf(options, signedUp.cookie)
  const team = await ask(options, { path: '/teams', token, body: { name: 'Demo' } })
  const teamId = have(team.json.id, 'team')
  const made = await ask(options, {
    path: `/teams/${teamId}/datasources`,
    token,
    body: { name: 'shop', type: 'POSTGRES', config: {}, accessMode: 'ROLE_BASED', minRole: 'MEMBER', ...where(shop) },
  })
  const datasourceId = have(made.json.id, 'datasource')
  const path = `/teams/${teamId}/datasources/${datasourceId}`
  await ask(options, { path: `${path}/test`, token, body: {} })
  await ask(options, { path: `${path}/introspect`, token, body: {} })
  await ask(options, { method: 'PUT', path: `${path}/exposure`, token, body: exposure })
  const scopes = ['profile', 'data:schema', 'data:read']
  const issued = await ask(options, { path: '/users/me/keys', token, body: { name: 'demo', scopes } })
  return { email, password, key: have(issued.json.key, 'key'), teamId, datasourceId, port: shop.port }
}

/** A later start: left as it was, unless the server had to take another port. */
async function moved(options: DemoOptions, kept: Kept, shop: DemoServer): Promise<Kept> {
  if (kept.port === shop.port) return kept
  const { email, password, teamId, datasourceId } = kept
  const signedIn = await ask(options, { path: '/auth/sign-in/email', body: { email, password } })
  const token = await tokenOf(options, signedIn.cookie)
  const path = `/teams/${teamId}/datasources/${datasourceId}`
  await ask(options, { method: 'PATCH', path, token, body: where(shop) })
  return { ...kept, port: shop.port }
}

async function tokenOf(options: DemoOptions, cookie: string): Promise<string> {
  return have((await ask(options, { method: 'GET', path: '/auth/token', cookie })).json.token, 'token')
}

function where({ host, port, database, username, password }: DemoServer) {
  return { connectionMode: 'DIRECT', host, port, database, username, password, sslMode: 'disable' }
}

/** Three lines to paste: describe, an answered query, a refused one. */
function storyOf(address: string, { email, password, key, teamId, datasourceId }: Kept): string {
  const at = `${address}/teams/${teamId}/datasources/${datasourceId}`
  const bearer = `-H 'Authorization: Bearer ${key}'`
  const query = (sql: string): string =>
    `curl -s ${at}/query ${bearer} -H 'Content-Type: application/json' -d '${JSON.stringify({ sql })}'`
  return `
The demo shop is connected. Sign in as ${email} with the password ${password}, or use this key:

  ${key}

Paste these. The first says what there is, the second is answered, the third is refused and says why:

curl -s ${at}/schema ${bearer}

${query(ANSWERED)}

${query(REFUSED)}

Read more at ${address}/docs. Start empty with VITRINE_DEMO=0.
`
}

const ANSWERED = 'SELECT status, count(*) AS orders FROM orders GROUP BY status ORDER BY orders DESC'
const REFUSED = 'SELECT full_name, email FROM customers LIMIT 5'
