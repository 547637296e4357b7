// The demo for newcomers: a shop in a real PostgreSQL beside the service, and three commands to try. It adds the shop
// through the REST API, as any client would.
import { readFile, writeFile } from 'node:fs/promises'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { z } from 'zod'
import exposure from '../demo/exposure.json' with { type: 'json' }
import { DEMO_EMAIL } from './config.ts'
import { startDemoServer, type DemoServer } from '../demo/server.ts'

export interface DemoOptions {
  /** For example http://127.0.0.1:3000. */
  readonly address: string
  readonly dataDir: string
  readonly setupToken: string | null
  readonly isNew: boolean
  /** True if a new account must first open a mailed link. */
  readonly asksMail: boolean
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}

/** What the first start has created. The file has mode 0600, because it contains a password and a key. */
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
  readonly story: string
}

/**
 * Starts the shop's database server. At the first start, also adds the shop as a datasource. Returns null if the store
 * is already used without the demo. Throws an Error for the operator if the server cannot run, or if the service
 * refuses a request.
 */
export async function openDemo(options: DemoOptions): Promise<Demo | null> {
  const file = join(options.dataDir, 'demo.json')
  const before = await readKept(file)
  if (before === null && !options.isNew) return null
  if (before === null && options.asksMail) {
    throw new Error('its account must first be verified by a mailed link. Start without SMTP_URL to see the demo.')
  }
  await using stack = new AsyncDisposableStack()
  const shop = stack.use(await startDemoServer(options))
  const kept = before === null ? await connect(options, shop) : await updatePort(options, before, shop)
  if (kept !== before) await writeFile(file, JSON.stringify(kept, null, 2), { mode: 0o600 })
  const held = stack.move()
  return { story: storyOf(options, kept), [Symbol.asyncDispose]: () => held.disposeAsync() }
}

async function readKept(file: string): Promise<Kept | null> {
  try {
    return Kept.parse(JSON.parse(await readFile(file, 'utf8')))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw new Error(`${file} cannot be read. Remove the file to start without the demo.`, { cause: error })
  }
}

/** Throws an Error with the path, but without the body of the request. */
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
  if (!res.ok) throw new Error(`the demo setup failed: ${method} ${path} answered ${res.status} ${text}`)
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

function required(value: string | undefined, what: string): string {
  if (value === undefined) throw new Error(`the demo setup failed: no ${what} in an answer`)
  return value
}

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
  const teamId = required(team.json.id, 'team')
  const made = await ask(options, {
    path: `/teams/${teamId}/datasources`,
    token,
    body: {
      name: 'shop',
      type: 'POSTGRES',
      config: {},
      accessMode: 'ROLE_BASED',
      minRole: 'MEMBER',
      ...connectionOf(shop),
    },
  })
  const datasourceId = required(made.json.id, 'datasource')
  const path = `/teams/${teamId}/datasources/${datasourceId}`
  await ask(options, { path: `${path}/test`, token, body: {} })
  await ask(options, { path: `${path}/introspect`, token, body: {} })
  await ask(options, { method: 'PUT', path: `${path}/exposure`, token, body: exposure })
  const scopes = ['profile', 'data:schema', 'data:read']
  const issued = await ask(options, { path: '/users/me/keys', token, body: { name: 'demo', scopes } })
  return { email, password, key: required(issued.json.key, 'key'), teamId, datasourceId, port: shop.port }
}

/** The database server may have another port than at the last start. */
async function updatePort(options: DemoOptions, kept: Kept, shop: DemoServer): Promise<Kept> {
  if (kept.port === shop.port) return kept
  const { email, password, teamId, datasourceId } = kept
  const signedIn = await ask(options, { path: '/auth/sign-in/email', body: { email, password } })
  const token = await tokenOf(options, signedIn.cookie)
  const path = `/teams/${teamId}/datasources/${datasourceId}`
  await ask(options, { method: 'PATCH', path, token, body: connectionOf(shop) })
  return { ...kept, port: shop.port }
}

async function tokenOf(options: DemoOptions, cookie: string): Promise<string> {
  return required((await ask(options, { method: 'GET', path: '/auth/token', cookie })).json.token, 'token')
}

function connectionOf({ host, port, database, username, password }: DemoServer) {
  return { connectionMode: 'DIRECT', host, port, database, username, password, sslMode: 'disable' }
}

function storyOf({ address, dataDir }: DemoOptions, kept: Kept): string {
  const { email, password, key, teamId, datasourceId } = kept
  const at = `${address}/teams/${teamId}/datasources/${datasourceId}`
  const bearer = `-H 'Authorization: Bearer ${key}'`
  const query = (sql: string): string =>
    `curl -s ${at}/query ${bearer} -H 'Content-Type: application/json' -d '${JSON.stringify({ sql })}'`
  return `
The demo shop is connected. Sign in as ${email} with the password ${password}, or use this key:

  ${key}

Paste these commands. The first describes the tables, the second is answered, the third is refused with the reason:

curl -s ${at}/schema ${bearer}

${query(ANSWERED)}

${query(REFUSED)}

Open ${address}/app for the console, and ${address}/docs for the API. All data is in ${dataDir}.
Start empty with VITRINE_DEMO=0.
`
}

const ANSWERED = 'SELECT status, count(*) AS orders FROM orders GROUP BY status ORDER BY orders DESC'
const REFUSED = 'SELECT full_name, email FROM customers LIMIT 5'
