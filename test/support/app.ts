// Starts the real service in this process, on a free port, with a store in its own folder and without the demo: `await
// using app = await startApp()`.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pino } from 'pino'
import { createApp, type App, type AppOptions } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import type { Route } from '../../src/contract/route-type.ts'
import { ROUTES } from '../../src/contract/key-routes.ts'
import { SESSION_ROUTES } from '../../src/contract/signed-in-routes.ts'
import { AppError } from '../../src/errors.ts'
import type { Operations } from '../../src/operations/order-of-checks.ts'
import { CHEAP_PASSWORDS } from './passwords.ts'
import { placeStore } from './stores.ts'
import { until } from './until.ts'

export interface TestAppOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly more?: AppOptions['more']
  readonly consoleDir?: string
  readonly connector?: NonNullable<AppOptions['connector']>
  /** How the service reads the metadata documents of OAuth clients. */
  readonly documents?: AppOptions['documents']
  /** Hashes passwords as in production, because another process of the service reads the store. */
  readonly hasRealPasswords?: boolean
  /** Receives every line of the log, down to `debug`. */
  readonly logged?: (line: string) => void
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // Tests read fields that they expect in the response.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly json: any
}

export interface RequestOptions {
  readonly token?: string | undefined
  /** Sent as JSON. A string is sent unchanged. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

export interface Person {
  readonly id: string
  readonly email: string
  readonly cookie: string
  /** The access token of the person's session. */
  readonly jwt: string
  ask(method: string, path: string, body?: unknown): Promise<Answer>
  must(method: string, path: string, body?: unknown): Promise<Answer['json']>
}

export const SCOPES = ['profile', 'data:schema', 'data:read'] as const
export const PASSWORD = 'a long enough password'

let people = 0

export class TestApp implements AsyncDisposable {
  readonly url: string
  readonly dataDir: string
  readonly #app: AsyncDisposable & Partial<App>

  /**
   * Disposes `app` with this object. If the service is another process, `app` has no operations, so that operate() and
   * `rooms` throw.
   */
  constructor(url: string, dataDir: string, app: AsyncDisposable & Partial<App>) {
    this.url = url
    this.dataDir = dataDir
    this.#app = app
  }

  get rooms(): Pick<App, 'authenticator' | 'operations'> {
    const { authenticator, operations } = this.#app
    if (authenticator === undefined || operations === undefined) throw new Error('this service is another process')
    return { authenticator, operations }
  }

  async ask(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
    const { token, body, headers, signal } = options
    const response = await fetch(this.url + path, {
      method,
      redirect: 'manual',
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: parse(text) }
  }

  /** Calls the operation without HTTP. Returns the same text and JSON as ask(). */
  async operate(
    method: string,
    path: string,
    options: Omit<RequestOptions, 'headers'> = {},
  ): Promise<Pick<Answer, 'text' | 'json'>> {
    const text = await answerOf(this.#app, method, path, options)
    return { text, json: parse(text) }
  }

  async must(method: string, path: string, options: RequestOptions = {}): Promise<Answer['json']> {
    const answer = await this.ask(method, path, options)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
    return answer.json
  }

  async person(name = 'Ada', email = `${name.toLowerCase()}-${++people}@example.test`): Promise<Person> {
    const signedUp = await this.#auth('/auth/sign-up/email', { name, email, password: PASSWORD })
    return this.#personOf(email, cookieOf(signedUp))
  }

  async signIn(email: string): Promise<Person> {
    return this.#personOf(email, cookieOf(await this.#auth('/auth/sign-in/email', { email, password: PASSWORD })))
  }

  async #personOf(email: string, cookie: string): Promise<Person> {
    const { token: jwt } = await this.must('GET', '/auth/token', { headers: { cookie } })
    const { id } = await this.must('GET', '/users/me', { token: jwt })
    return {
      id,
      email,
      cookie,
      jwt,
      ask: (method, path, body) => this.ask(method, path, { token: jwt, body }),
      must: (method, path, body) => this.must(method, path, { token: jwt, body }),
    }
  }

  async #auth(path: string, body: object): Promise<Answer> {
    const answer = await this.ask('POST', path, { body, headers: { origin: this.url } })
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${answer.text}`)
    return answer
  }

  /** Creates an API key. By default, it has all scopes. */
  async key(person: Person, order: object = {}): Promise<string> {
    return (await person.must('POST', '/users/me/keys', { name: 'test', scopes: SCOPES, ...order })).key
  }

  /** Creates a team whose budget no test uses up, and whose budget window does not end during a test. */
  async team(owner: Person, name = 'Team', settings: object = {}): Promise<string> {
    const { id } = await owner.must('POST', '/teams', { name })
    await owner.must('PATCH', `/teams/${id}`, {
      settings: { queryBudget: { limit: 1_000_000, windowSeconds: 86_400 }, ...settings },
    })
    return id
  }

  /** Adds a member. By default, the member is ACTIVE. */
  async join(owner: Person, teamId: string, person: Person, role = 'MEMBER', opened = true): Promise<void> {
    const invited = await owner.must('POST', `/teams/${teamId}/members`, { email: person.email, role })
    await person.ask('POST', `/invitations/${invited.inviteToken}/accept`)
    if (opened) await person.must('POST', `/teams/${teamId}/open`)
  }

  /** Creates and introspects a datasource, and exposes `tables`. Returns its id. */
  async datasource(owner: Person, teamId: string, spec: object, tables?: readonly object[]): Promise<string> {
    const { id } = await owner.must('POST', `/teams/${teamId}/datasources`, {
      name: 'shop',
      type: 'POSTGRES',
      connectionMode: 'DIRECT',
      sslMode: 'disable',
      accessMode: 'ROLE_BASED',
      minRole: 'MEMBER',
      ...spec,
    })
    await introspected(owner, `/teams/${teamId}/datasources/${id}`)
    if (tables !== undefined) await owner.must('PUT', `/teams/${teamId}/datasources/${id}/exposure`, { tables })
    return id
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#app[Symbol.asyncDispose]()
    await rm(this.dataDir, { recursive: true, force: true })
  }
}

/** Waits for the introspection. If the machine is busy, it goes on as a job. */
async function introspected(owner: Person, at: string): Promise<void> {
  const { jobId } = await owner.must('POST', `${at}/introspect`)
  const hasEnded = async () => (await owner.must('GET', `${at}/jobs/${jobId}`)).state !== 'RUNNING'
  if (jobId !== undefined) await until('the introspection ends', hasEnded)
}

const TABLE: Readonly<Record<string, Route>> = { ...ROUTES, ...SESSION_ROUTES }

async function answerOf(
  { authenticator, operations }: Partial<App>,
  method: string,
  path: string,
  options: RequestOptions,
): Promise<string> {
  const url = new URL(path, 'http://localhost')
  if (authenticator === undefined || operations === undefined) throw new Error('this service is another process')
  try {
    const caller = await authenticator.authenticate(`Bearer ${options.token ?? ''}`)
    const signal = options.signal ?? new AbortController().signal
    const arrival = { caller, knownAt: performance.now(), via: 'CONNECTOR', client: 'test/1.0', signal } as const
    for (const [id, route] of Object.entries(TABLE)) {
      const params = route.method === method ? paramsOf(route.path, url.pathname) : null
      if (params === null) continue
      const input = { params, query: Object.fromEntries(url.searchParams), body: options.body }
      return await textOf(await operations[id as keyof Operations](arrival, input))
    }
  } catch (error) {
    if (error instanceof AppError) return JSON.stringify({ error: error.message, code: error.code, ...error.extra })
    throw error
  }
  throw new Error(`no operation has the route ${method} ${path}`)
}

function paramsOf(route: string, path: string): Record<string, string> | null {
  const names = route.split('/')
  const parts = path.split('/')
  if (names.length !== parts.length) return null
  const params: Record<string, string> = {}
  for (const [n, name] of names.entries()) {
    const part = parts[n] ?? ''
    if (name.startsWith('{')) params[name.slice(1, -1)] = decodeURIComponent(part)
    else if (name !== part) return null
  }
  return params
}

async function textOf(value: unknown): Promise<string> {
  if (typeof value !== 'object' || value === null) return ''
  if ('parts' in value) return await text(Readable.from(value.parts as AsyncIterable<string>))
  return 'json' in value ? String(value.json) : JSON.stringify(value)
}

/** The service gets its own environment, without the variables of the test run. */
export async function startApp(options: TestAppOptions = {}): Promise<TestApp> {
  const dataDir = await mkdtemp(join(tmpdir(), 'vitrine-app-'))
  if (options.env?.['DATABASE_URL'] === undefined) await placeStore(dataDir)
  const config = readConfig({ PORT: '0', VITRINE_DATA_DIR: dataDir, VITRINE_DEMO: '0', ...options.env })
  try {
    const app = await createApp({
      config,
      log: logOf(options),
      ...(options.more === undefined ? {} : { more: options.more }),
      ...(options.connector === undefined ? {} : { connector: options.connector }),
      ...(options.consoleDir === undefined ? {} : { consoleDir: options.consoleDir }),
      ...(options.documents === undefined ? {} : { documents: options.documents }),
      ...(options.hasRealPasswords === true ? {} : { passwords: CHEAP_PASSWORDS }),
    })
    return new TestApp(await app.listen(), dataDir, app)
  } catch (error) {
    await rm(dataDir, { recursive: true, force: true })
    throw error
  }
}

function logOf({ logged }: TestAppOptions) {
  if (logged !== undefined) return pino({ level: 'debug' }, { write: logged })
  return pino({ level: process.env['TEST_LOG_LEVEL'] ?? 'silent' })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function cookieOf(answer: Answer): string {
  return answer.headers
    .getSetCookie()
    .filter((cookie) => !/max-age=0\b/i.test(cookie))
    .map((cookie) => cookie.split(';', 1)[0])
    .join('; ')
}
