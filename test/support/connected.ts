// Opens the rooms without HTTP: `await using rooms = await openRooms()`. The store, in a temporary folder, and the
// drivers are real.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Call, Scope } from '../../src/auth/caller.ts'
import { readConfig } from '../../src/config.ts'
import { type LeaseOptions } from '../../src/datasources/connection-pool.ts'
import { newId, type AccountId, type ApiKeyId, type DatasourceId, type SessionId, type TeamId } from '../../src/ids.ts'
import { wasNarrowed } from '../../src/exposure/exposure.ts'
import { openRunning } from '../../src/query/running-queries.ts'
import { reach } from '../../src/datasources/require-reach.ts'
import type { Role } from '../../src/contract/schemas.ts'
import type { Membership } from '../../src/teams/require-membership.ts'
import { addSession } from './people.ts'
import { teamRow } from './rows.ts'
import { placeStore, type StoreConfig } from './stores.ts'
import { openRooms as composeRooms } from '../../src/composition-root.ts'

const AT = '2026-01-01T00:00:00.000Z'

export type Rooms = Awaited<ReturnType<typeof openRooms>>

interface Options {
  readonly leases?: Partial<LeaseOptions>
  /** The configuration of an existing store, to open it again or several times at once. */
  readonly at?: StoreConfig
}

export async function openRooms(options: Options = {}) {
  await using opened = new AsyncDisposableStack()
  const dataDir = await mkdtemp(join(tmpdir(), 'vitrine-rooms-'))
  opened.defer(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }))
  if (options.at === undefined) await placeStore(dataDir)
  const own = readConfig({ VITRINE_DATA_DIR: dataDir, VITRINE_ALLOW_PRIVATE_HOSTS: '1' })
  const config = options.at === undefined ? own : { ...own, ...options.at, secretKey: new Uint8Array(32).fill(7) }
  const { leases = {} } = options
  const rooms = opened.use(await composeRooms({ config, log: SILENT, origin: () => 'http://127.0.0.1:3000', leases }))
  // In these tests, keys and sessions are not stored. So for a running query, only the caller's access to the
  // datasource is checked.
  const running = opened.use(
    openRunning({
      again: async (caller) => caller,
      reach: (call, at) => reach(rooms, call, at.teamId, at.id),
      narrowed: (at, version) => wasNarrowed(rooms.store, at.row, version),
    }),
  )
  const resources = opened.move()
  return { ...rooms, running, [Symbol.asyncDispose]: () => resources.disposeAsync() }
}

const ignore = () => undefined
const SILENT = { info: ignore, warn: ignore, error: ignore }

async function addAccount(rooms: Rooms): Promise<AccountId> {
  const id = newId<AccountId>()
  const row = {
    id,
    name: 'Ada',
    email: `${id}@example.test`,
    emailVerified: 1,
    image: null,
    createdAt: AT,
    updatedAt: AT,
  }
  await rooms.store.write((tx) => tx.insertInto('accounts').values(row).execute())
  return id
}

export async function addTeam(rooms: Rooms, settings: object = {}): Promise<TeamId> {
  const id = newId<TeamId>()
  const row = teamRow(id, { settings: JSON.stringify(settings) })
  await rooms.store.write((tx) => tx.insertInto('teams').values(row).execute())
  return id
}

export async function addMember(
  rooms: Rooms,
  teamId: TeamId,
  role: Role,
  status: Membership['status'] = 'ACTIVE',
): Promise<Membership> {
  const accountId = await addAccount(rooms)
  const row = { team_id: teamId, account_id: accountId, role, status, created_at: AT }
  await rooms.store.write((tx) => tx.insertInto('memberships').values(row).execute())
  return { teamId, accountId, role, status }
}

export function sessionCall(accountId: AccountId, action: string, signal = new AbortController().signal): Call {
  return {
    caller: { kind: 'session', accountId, name: 'Ada', sessionId: newId<SessionId>(), signedInAt: AT },
    action,
    via: 'REST',
    signal,
  }
}

/**
 * Makes a call with a stored session. Some operations, such as creating a key, check that the session is still valid.
 */
export async function livingSession(rooms: Rooms, accountId: AccountId, action: string): Promise<Call> {
  const call = sessionCall(accountId, action)
  if (call.caller.kind !== 'session') throw new TypeError('no session')
  await addSession(rooms, call.caller)
  return call
}

/** The key has all scopes. `narrowed` may restrict its teams and datasources. */
export function keyCall(
  accountId: AccountId,
  action: string,
  narrowed: {
    readonly teamIds?: readonly TeamId[]
    readonly datasourceIds?: readonly DatasourceId[]
    readonly ended?: readonly TeamId[]
  } = {},
  signal = new AbortController().signal,
): Call {
  const { teamIds, datasourceIds, ended } = narrowed
  return {
    caller: {
      kind: 'key',
      accountId,
      name: 'Ada',
      keyId: newId<ApiKeyId>(),
      keyName: 'test',
      scopes: new Set<Scope>(['profile', 'data:schema', 'data:read']),
      teamIds: teamIds === undefined ? null : new Set(teamIds),
      datasourceIds: datasourceIds === undefined ? null : new Set(datasourceIds),
      endedTeamIds: new Set(ended),
      expiresAt: null,
    },
    action,
    via: 'REST',
    signal,
  }
}
