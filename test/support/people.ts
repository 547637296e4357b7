// Opens the rooms over a store, and creates accounts and calls, for tests without HTTP.
import type { Call, SessionCaller } from '../../src/auth/caller.ts'
import { readConfig, type Config } from '../../src/config.ts'
import { asId, newId, type AccountId, type DatasourceId, type SessionId, type TeamId } from '../../src/ids.ts'
import { CHEAP_PASSWORDS } from './passwords.ts'
import { datasourceRow } from './rows.ts'
import type { StoreSource } from './stores.ts'
import {
  openRooms as composeRooms,
  type Rooms as ComposedRooms,
  type RoomsOptions,
} from '../../src/composition-root.ts'
import { storedFlag } from '../../src/store/better-auth-booleans.ts'
import { storedTime } from '../../src/store/better-auth-times.ts'

export interface Rooms extends ComposedRooms {
  /** Warnings and errors. Without a mail server, a mail is also logged as a warning. */
  readonly logged: Record<string, unknown>[]
  /** The datasources of deleted teams. */
  readonly gone: DatasourceId[]
  /** A test sets the time with `clock.at`. */
  readonly clock: { at: number }
}

export const PASSWORD = 'correct horse battery'

export async function openRooms(
  source: Pick<StoreSource, 'config'>,
  env: Record<string, string> = {},
  {
    hasRealPasswords = false,
    ...more
  }: Pick<RoomsOptions, 'transport' | 'passwords' | 'documents'> & { readonly hasRealPasswords?: boolean } = {},
): Promise<Rooms> {
  const at = await source.config()
  const config: Config = { ...readConfig(env), ...at, secretKey: new Uint8Array(32).fill(9) }
  const clock = { at: Date.now() }
  const gone: DatasourceId[] = []
  const logged: Record<string, unknown>[] = []
  const keep = (detail: object, message: string) => void logged.push({ ...detail, message })
  const log = { info: () => undefined, warn: keep, error: keep }
  const origin = () => config.publicUrl ?? 'http://127.0.0.1:3000'
  const passwords = hasRealPasswords ? {} : { passwords: CHEAP_PASSWORDS }
  const rooms = await composeRooms({ config, log, origin, now: () => clock.at, ...passwords, ...more })
  return { ...rooms, logged, gone, ended: async (ids) => void gone.push(...ids), clock }
}

export interface RequestOptions {
  readonly cookie?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  /** Aborts if the caller hangs up. */
  readonly signal?: AbortSignal | undefined
}

/** Sends a request to /auth as the HTTP server would. */
export async function auth(rooms: Pick<Rooms, 'signIn'>, route: string, body?: unknown, options: RequestOptions = {}) {
  const [method = '', path = ''] = route.split(' ')
  const response = await rooms.signIn.handle(
    new Request(`http://127.0.0.1:3000/auth/${path}`, {
      method,
      signal: options.signal ?? null,
      headers: {
        'x-vitrine-client': '127.0.0.1',
        ...(options.cookie === undefined ? {} : { cookie: options.cookie }),
        ...(method === 'GET' ? {} : { 'content-type': 'application/json' }),
        ...options.headers,
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

/** Returns a call with a session of a new account. */
export async function someone(rooms: Rooms, email: string, options: { verified?: boolean } = {}): Promise<Call> {
  // Rows are ordered by time, so the clock moves on with each person.
  rooms.clock.at++
  const id = newId<AccountId>()
  const at = storedTime(rooms.store.dialect, rooms.now())
  const emailVerified = storedFlag(rooms.store.dialect, options.verified === true)
  const name = email.split('@')[0] ?? ''
  const row = { id, name, email, emailVerified, image: null, createdAt: at, updatedAt: at }
  await rooms.store.write((tx) => tx.insertInto('accounts').values(row).execute())
  return await sessionOf(rooms, id)
}

export async function sessionOf(rooms: Rooms, accountId: AccountId, action?: string): Promise<Call> {
  const call = callOf(rooms, accountId, action)
  await addSession(rooms, call.caller)
  return call
}

/** Stores a session, which ends in a week. */
export async function addSession(
  rooms: Pick<Rooms, 'store' | 'now'>,
  { accountId, sessionId }: Pick<SessionCaller, 'accountId' | 'sessionId'>,
): Promise<void> {
  const time = (ms: number) => storedTime(rooms.store.dialect, ms)
  const [createdAt, expiresAt] = [time(rooms.now()), time(rooms.now() + 7 * 86_400_000)]
  const of = { userId: accountId, token: newId(), ipAddress: null, userAgent: null }
  await rooms.store.write((tx) =>
    tx
      .insertInto('sessions')
      .values({ id: sessionId, ...of, createdAt, updatedAt: createdAt, expiresAt })
      .execute(),
  )
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

/** Adds a datasource that is connected to nothing. */
export async function someDatasource(
  rooms: Rooms,
  teamId: string,
  more: { accessMode?: 'ROLE_BASED' | 'EXPLICIT'; minRole?: 'OWNER' | 'ADMIN' | 'MEMBER' } = {},
): Promise<DatasourceId> {
  const at = new Date(rooms.now()).toISOString()
  const row = datasourceRow(asId<TeamId>(teamId), {
    created_at: at,
    updated_at: at,
    ...(more.accessMode !== undefined && { access_mode: more.accessMode }),
    ...(more.minRole !== undefined && { min_role: more.minRole }),
  })
  await rooms.store.write((tx) => tx.insertInto('datasources').values(row).execute())
  return row.id
}

/** `work` must reject. Returns the code, the message and the details of the error. */
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
