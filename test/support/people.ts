// Accounts, calls and an audit for the tests of rooms that sit on the store: what a door would hand them.
import { openAudit } from '../../src/audit/audit.ts'
import { attempts, type Attempts } from '../../src/auth/attempts.ts'
import { openSignIn, type SignIn } from '../../src/sign-in/sign-in.ts'
import type { Call, SessionCaller } from '../../src/auth/caller.ts'
import { readConfig, type Config } from '../../src/config.ts'
import { asId, newId, type AccountId, type DatasourceId, type SessionId, type TeamId } from '../../src/ids.ts'
import { openMail, type Mail } from '../../src/mail/mail.ts'
import { openSecrets } from '../../src/secrets.ts'
import { openStore, type Store } from '../../src/store/open.ts'
import { reachedBy } from '../../src/teams/counts.ts'
import type { StoreSource } from './stores.ts'

export interface Rooms extends AsyncDisposable {
  readonly config: Config
  readonly store: Store
  readonly audit: ReturnType<typeof openAudit>
  readonly signIn: SignIn
  readonly mail: Mail
  readonly origin: () => string
  readonly tries: Attempts
  readonly reached: typeof reachedBy
  /** What went to the log in the place of a mail, and what else it was warned of. */
  readonly logged: Record<string, unknown>[]
  /** Datasources whose team was deleted. */
  readonly gone: DatasourceId[]
  readonly ended: (ids: readonly DatasourceId[]) => Promise<void>
  /** Sometime; a test moves it by `clock.at`. */
  readonly clock: { at: number }
  readonly now: () => number
}

export const PASSWORD = 'correct horse battery'

/** An empty store with the rooms' dependencies over it. */
export async function openRooms(source: StoreSource, env: Record<string, string> = {}): Promise<Rooms> {
  const at = await source.config()
  const config: Config = { ...readConfig(env), ...at, secretKey: new Uint8Array(32).fill(9) }
  const store = await openStore(config)
  const audit = openAudit({ store, key: new Uint8Array(32) })
  const clock = { at: Date.now() }
  const now = () => clock.at
  const gone: DatasourceId[] = []
  const logged: Record<string, unknown>[] = []
  const keep = (detail: object, message: string) => void logged.push({ ...detail, message })
  const log = { warn: keep, error: keep }
  const mail = openMail({ config, log })
  const origin = () => config.publicUrl ?? 'http://127.0.0.1:3000'
  const signIn = openSignIn({ store, audit, config, secrets: await openSecrets(config), mail, origin, log, now })
  return {
    config,
    store,
    audit,
    signIn,
    mail,
    origin,
    tries: attempts(store, now),
    reached: reachedBy,
    logged,
    gone,
    ended: async (ids) => void gone.push(...ids),
    clock,
    now,
    async [Symbol.asyncDispose]() {
      await mail[Symbol.asyncDispose]()
      await audit[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}

export interface Asked {
  readonly cookie?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
}

/** One request under /auth, as the door hands it over. */
export async function auth(rooms: Pick<Rooms, 'signIn'>, route: string, body?: unknown, asked: Asked = {}) {
  const [method = '', path = ''] = route.split(' ')
  const response = await rooms.signIn.handle(
    new Request(`http://127.0.0.1:3000/auth/${path}`, {
      method,
      headers: {
        'x-vitrine-client': '127.0.0.1',
        ...(asked.cookie === undefined ? {} : { cookie: asked.cookie }),
        ...(method === 'GET' ? {} : { 'content-type': 'application/json' }),
        ...asked.headers,
      },
      ...(method === 'GET' ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body ?? {}) }),
    }),
  )
  const text = await response.text()
  const cookies = response.headers.getSetCookie()
  const cookie = cookies
    .filter((each) => !/max-age=0/i.test(each))
    .map((each) => each.split(';')[0])
    .join('; ')
  const location = response.headers.get('location')
  const isPage = response.headers.get('content-type')?.startsWith('text/html') === true
  return { text, json: text === '' || isPage ? null : JSON.parse(text), cookie, cookies, location }
}

/** An account straight in the store, and a call by a session of it. */
export async function someone(rooms: Rooms, email: string, options: { verified?: boolean } = {}): Promise<Call> {
  // Things that follow each other are ordered by their time: it moves with each person.
  rooms.clock.at++
  const id = newId<AccountId>()
  const at = rooms.store.dialect === 'postgres' ? new Date(rooms.now()) : new Date(rooms.now()).toISOString()
  const emailVerified =
    rooms.store.dialect === 'postgres' ? options.verified === true : Number(options.verified === true)
  const name = email.split('@')[0] ?? ''
  const row = { id, name, email, emailVerified, image: null, createdAt: at, updatedAt: at }
  await rooms.store.write((tx) => tx.insertInto('accounts').values(row).execute())
  return await sessionOf(rooms, id)
}

/** As callOf, by a session that there is. */
export async function sessionOf(rooms: Rooms, accountId: AccountId, action?: string): Promise<Call> {
  const call = callOf(rooms, accountId, action)
  const time = (ms: number) => (rooms.store.dialect === 'postgres' ? new Date(ms) : new Date(ms).toISOString())
  const [createdAt, expiresAt] = [time(rooms.now()), time(rooms.now() + 7 * 86_400_000)]
  const of = { userId: accountId, token: newId(), ipAddress: null, userAgent: null }
  const { sessionId } = call.caller
  await rooms.store.write((tx) =>
    tx
      .insertInto('sessions')
      .values({ id: sessionId, ...of, createdAt, updatedAt: createdAt, expiresAt })
      .execute(),
  )
  return call
}

export function callOf(rooms: Rooms, accountId: AccountId, action = 'test'): Call & { readonly caller: SessionCaller } {
  const caller: SessionCaller = {
    kind: 'session',
    accountId,
    name: 'Ada',
    sessionId: newId<SessionId>(),
    signedInAt: new Date(rooms.now()).toISOString(),
  }
  return { caller, action, via: 'REST', signal: new AbortController().signal }
}

/** A datasource row; nothing is ever connected. */
export async function someDatasource(
  rooms: Rooms,
  teamId: string,
  more: { accessMode?: 'ROLE_BASED' | 'EXPLICIT'; minRole?: 'OWNER' | 'ADMIN' | 'MEMBER' } = {},
): Promise<DatasourceId> {
  const id = newId<DatasourceId>()
  const at = new Date(rooms.now()).toISOString()
  const row = {
    id,
    team_id: asId<TeamId>(teamId),
    name: 'shop',
    type: 'POSTGRES',
    status: 'PENDING',
    connection_mode: 'DIRECT',
    host: 'db.example.test',
    port: 5432,
    database: 'shop',
    username: 'reader',
    ssl_mode: 'verify-full',
    config: '{}',
    access_mode: more.accessMode ?? 'ROLE_BASED',
    min_role: more.minRole ?? 'MEMBER',
    created_at: at,
    updated_at: at,
    last_tested_at: null,
    last_error: null,
    connection_version: 1,
    catalog_version: 0,
    exposure_version: 0,
  } as const
  await rooms.store.write((tx) => tx.insertInto('datasources').values(row).execute())
  return id
}

/** What a promise is refused with: its code, and what goes with it. */
export async function refusal(work: Promise<unknown>): Promise<Record<string, unknown>> {
  try {
    await work
  } catch (error) {
    if (error instanceof Error && 'code' in error && 'extra' in error) {
      return { code: error.code, message: error.message, ...(error.extra as object) }
    }
    throw error
  }
  throw new Error('it was not refused')
}

export async function codeOf(work: Promise<unknown>): Promise<unknown> {
  return (await refusal(work))['code']
}
