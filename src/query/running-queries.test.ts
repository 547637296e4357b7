import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { addMember, addTeam, openRooms, sessionCall, type Rooms } from '../../test/support/connected.ts'
import type { Call } from '../auth/caller.ts'
import { createDatasource } from '../datasources/datasources.ts'
import { deadlineOf } from '../deadline.ts'
import { wasNarrowed } from '../exposure/exposure.ts'
import { reach, type Reached } from '../datasources/require-reach.ts'
import { asId, type DatasourceId, type TeamId } from '../ids.ts'
import { contended } from '../store/postgres.ts'
import { openRunning, type RunningDeps } from './running-queries.ts'

describe('a running query', () => {
  let rooms: Rooms
  let teamId: TeamId
  let call: Call
  let at: Reached
  before(async () => {
    rooms = await openRooms()
    teamId = await addTeam(rooms)
    const owner = await addMember(rooms, teamId, 'OWNER')
    call = sessionCall(owner.accountId, 'runQuery')
    const address = { host: '127.0.0.1', port: 1, database: 'd', username: 'u', password: 'p' }
    const order = { name: 'x', type: 'POSTGRES', connectionMode: 'DIRECT', sslMode: 'disable', ...address } as const
    const { id } = await createDatasource(rooms, call, owner, order)
    at = await reach(rooms, call, teamId, asId<DatasourceId>(id))
  })
  after(() => rooms[Symbol.asyncDispose]())

  const deps: RunningDeps = {
    again: async (caller) => caller,
    reach: (call, at) => reach(rooms, call, at.teamId, at.id),
    narrowed: (at, version) => wasNarrowed(rooms.store, at.row, version),
  }

  test('a running query continues while the store is busy', async () => {
    let looks = 0
    const looked = Promise.withResolvers<void>()
    const busy = async () => {
      if (++looks === 3) looked.resolve()
      throw contended(new Error('no connection'))
    }
    await using running = openRunning({ ...deps, reach: busy })
    using deadline = deadlineOf(call.signal, 60_000)
    using _running = running.add(call, at, deadline)
    await looked.promise
    assert.deepEqual([deadline.ended, deadline.signal.aborted], [null, false])
  })

  test('a running query is cancelled when the connection settings of its datasource change', async () => {
    const row = { ...at.row, connection_version: at.row.connection_version + 1 }
    await using running = openRunning({ ...deps, reach: async () => ({ ...at, row }) })
    using deadline = deadlineOf(call.signal, 60_000)
    using _running = running.add(call, at, deadline)
    await once(deadline.signal, 'abort')
    assert.match(String(deadline.ended?.message), /has just changed/)
  })

  test('a running query is cancelled when its team begins to require a second factor that the caller lacks', async () => {
    await using running = openRunning(deps)
    using deadline = deadlineOf(call.signal, 60_000)
    using _running = running.add(call, at, deadline)
    const settings = JSON.stringify({ requireSecondFactor: true })
    await rooms.store.write((tx) => tx.updateTable('teams').set({ settings }).where('id', '=', teamId).execute())
    await once(deadline.signal, 'abort')
    assert.equal(deadline.ended?.code, 'SECOND_FACTOR_REQUIRED')
  })
})
