import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { startPostgres, type TestPostgres } from '../../test/support/postgres.ts'
import { addMember, addTeam, openRooms, sessionCall, type Rooms } from '../../test/support/connected.ts'
import { LIMITS, queryOf } from '../../test/support/postgres-session.ts'
import { until } from '../../test/support/until.ts'
import { seal } from '../drivers/confined.ts'
import type { PostgresCapture } from '../drivers/postgres/captured-facts.ts'
import { AppError } from '../errors.ts'
import type { DatasourceId } from '../ids.ts'
import type { Membership } from '../teams/require-membership.ts'
import { changeDatasource, createDatasource, disableDatasource } from './datasources.ts'
import { openLeases, type Lease, type LeaseOptions, type Leases } from './connection-pool.ts'
import { reach, type Reached } from './require-reach.ts'

const NEVER = new AbortController().signal

describe('leases', () => {
  let postgres: TestPostgres
  let rooms: Rooms
  let owner: Membership
  before(async () => {
    // One test stops processes of the server, so this file needs its own server.
    postgres = await startPostgres({ settings: {} })
    rooms = await openRooms()
    owner = await addMember(rooms, await addTeam(rooms), 'OWNER')
  })
  after(async () => {
    await rooms[Symbol.asyncDispose]()
    await postgres[Symbol.asyncDispose]()
  })

  const call = () => sessionCall(owner.accountId, 'runQuery')
  const at = (id: DatasourceId): Promise<Reached> => reach(rooms, call(), owner.teamId, id)
  /** Creates a datasource with its own database, so that its sessions can be counted. */
  async function target(): Promise<Reached> {
    const database = await postgres.createDatabase(`leases_${Math.random().toString(36).slice(2)}`)
    const address = { host: postgres.host, port: postgres.port, database, username: postgres.superuser }
    const item = await createDatasource(rooms, call(), owner, {
      name: 'shop',
      type: 'POSTGRES',
      connectionMode: 'DIRECT',
      sslMode: 'disable',
      password: postgres.password,
      ...address,
    })
    return await at(item.id as DatasourceId)
  }
  const lines: string[] = []
  const say = (_: object, line: string) => void lines.push(line)
  const pool = (options: Partial<LeaseOptions>): Leases => {
    const { store, secrets } = rooms
    return openLeases(
      { store, secrets, log: { info: say, warn: say }, connectOptions: { allowPrivateHosts: true } },
      options,
    )
  }
  async function sessions(of: Reached): Promise<number> {
    const rows = await postgres.query(
      'postgres',
      `SELECT count(*) FROM pg_stat_activity WHERE datname = '${of.row.database}' AND pid <> pg_backend_pid()`,
    )
    return Number(rows[0]?.[0])
  }
  /** The server needs a moment to notice that a session has ended. */
  async function becomes(of: Reached, count: number): Promise<void> {
    await until(`there are ${count} sessions`, async () => (await sessions(of)) === count)
  }
  /** Seals a query that the guard has not checked. */
  async function sealed(leases: Leases, of: Reached, text: string) {
    await using connection = await leases.connect(of, NEVER)
    const { capture } = await connection.introspect(NEVER)
    const { serverVersion, implicit } = capture as PostgresCapture
    return seal('POSTGRES', queryOf(text, serverVersion, { implicit }))
  }
  const give = (lease: Lease) => lease[Symbol.asyncDispose]()

  test('the pool reuses a returned connection', async () => {
    await using leases = pool({})
    const of = await target()
    const first = await leases.take(of, NEVER)
    const { connection } = first
    await give(first)
    const second = await leases.take(of, NEVER)
    assert.equal(second.connection, connection)
    await give(second)
    assert.equal(await sessions(of), 1)
  })

  test('the pool never exceeds its limit: later callers wait, or get OVERLOADED if too many wait already', async () => {
    await using leases = pool({ connectionsMax: 2, waitersMax: 1, waitMs: 600_000 })
    const of = await target()
    const [a, b] = await Promise.all([leases.take(of, NEVER), leases.take(of, NEVER)])
    const waits = leases.take(of, NEVER)
    await assert.rejects(leases.take(of, NEVER), { code: 'OVERLOADED', extra: { retryAfter: 2 } })
    await give(a)
    assert.equal((await waits).connection, a.connection)
    assert.equal(await sessions(of), 2)
    await Promise.all([give(b), give(await waits)])

    await using impatient = pool({ connectionsMax: 1, waitMs: 50 })
    const held = await impatient.take(of, NEVER)
    await assert.rejects(impatient.take(of, NEVER), { code: 'OVERLOADED' })
    await give(held)
  })

  test('a caller is refused immediately if the pool expects no free connection in time', async () => {
    const at = await target()
    await using leases = pool({ connectionsMax: 1, waitMs: 50 })
    {
      await using _held = await leases.take(at, NEVER)
      // This caller waits for the whole time. After that, the pool knows how long a connection is used.
      await assert.rejects(leases.take(at, NEVER), /are in use\. Try/)
    }
    await using _held = await leases.take(at, NEVER)
    await assert.rejects(leases.take(at, NEVER), {
      code: 'OVERLOADED',
      message: /none is expected to become free in time/,
    })
    // The caller's deadline is shorter than the time for which the pool lets callers wait.
    await using patient = pool({ connectionsMax: 1, waitMs: 60_000 })
    {
      await using _used = await patient.take(at, NEVER)
    }
    await using _other = await patient.take(at, NEVER)
    await assert.rejects(patient.take(at, NEVER, 0), {
      code: 'OVERLOADED',
      message: /none is expected to become free in time/,
    })
  })

  test('a lease that is returned twice returns its connection only once', async () => {
    await using leases = pool({ connectionsMax: 2 })
    const of = await target()
    const lease = await leases.take(of, NEVER)
    await give(lease)
    await give(lease)
    const [a, b] = await Promise.all([leases.take(of, NEVER), leases.take(of, NEVER)])
    assert.notEqual(a.connection, b.connection)
    await Promise.all([give(a), give(b)])
  })

  test('a caller that hangs up while it waits takes no connection', async () => {
    await using leases = pool({ connectionsMax: 1 })
    const of = await target()
    const held = await leases.take(of, NEVER)
    const caller = new AbortController()
    const gone = leases.take(of, caller.signal)
    const next = leases.take(of, NEVER)
    caller.abort(new Error('hung up'))
    await assert.rejects(gone, /hung up/)
    await give(held)
    assert.equal((await next).connection, held.connection)
    await give(await next)
  })

  test('the pool replaces a session that the server ended, even for a caller that already waits', async () => {
    await using leases = pool({ connectionsMax: 1 })
    const of = await target()
    const held = await leases.take(of, NEVER)
    const next = leases.take(of, NEVER)
    await postgres.query(
      'postgres',
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${of.row.database}'`,
    )
    await until('the connection is no longer usable', () => !held.connection.usable)
    await give(held)
    const fresh = await next
    assert.equal(fresh.connection.usable, true)
    await give(fresh)
  })

  test('an abandoned query keeps its place in the pool until the database ends it', async (t) => {
    if (!existsSync('/proc')) return t.skip('this test needs /proc')
    await using leases = pool({ connectionsMax: 2, waitMs: 600_000 })
    const of = await target()
    const query = await sealed(leases, of, 'SELECT count(*) FROM generate_series(1, 1e12)')
    const stopped: number[] = []
    const active = `SELECT pid FROM pg_stat_activity WHERE datname = '${of.row.database}' AND state = 'active'`
    /** Abandons a query whose server process is stopped, so that it ignores the cancel request. */
    const giveUp = async () => {
      const lease = await leases.take(of, NEVER)
      const caller = new AbortController()
      const running = lease.connection.run(query, LIMITS, caller.signal)
      await until('the query runs', async () => {
        const pids = (await postgres.query('postgres', active)).map(([pid]) => Number(pid))
        const pid = pids.find((each) => !stopped.includes(each))
        if (pid !== undefined) stopped.push(pid)
        return pid !== undefined
      })
      for (const pid of stopped) process.kill(pid, 'SIGSTOP')
      caller.abort(new AppError('QUERY_TIMEOUT', 'given up'))
      await assert.rejects(running, { code: 'QUERY_TIMEOUT' })
      await give(lease)
    }
    const places = () => {
      const samples = [...(leases.families()[0]?.samples() ?? [])]
      return samples.flatMap(([{ kind, state }, n]) => (kind === 'POSTGRES' ? [[state, n]] : []))
    }
    try {
      await giveUp()
      assert.deepEqual(places(), [['used', 0], ['idle', 0], ['abandoned', 1]]) // prettier-ignore
      await giveUp()
      await until('both are overdue', () => lines.length === 2)
      for (let tried = 0; tried < 3; tried++) {
        await assert.rejects(leases.take(of, NEVER), {
          code: 'OVERLOADED',
          extra: { retryAfter: 10 },
          message: /2 of them by queries that Vitrine gave up/,
        })
      }
      assert.equal(await sessions(of), 2)
    } finally {
      for (const pid of stopped) process.kill(pid, 'SIGCONT')
    }
    await becomes(of, 0)
    await until('the places are free', () => places().every(([, n]) => n === 0))
    assert.deepEqual(lines.slice(2), Array<string>(2).fill('the database has ended a query that was given up'))
    await give(await leases.take(of, NEVER))
  })

  test('a query whose answer is cut off frees its place in the pool when the database has ended it', async () => {
    await using leases = pool({ connectionsMax: 1 })
    const of = await target()
    const query = await sealed(leases, of, "SELECT repeat('x', 100000), generate_series(1, 1000000000)")
    for (let tried = 0; tried < 3; tried++) {
      const lease = await leases.take(of, NEVER)
      const { truncated } = await lease.connection.run(query, { ...LIMITS, maxResponseBytes: 200_000 }, NEVER)
      assert.deepEqual([truncated, lease.connection.usable], [true, false])
      await give(lease)
    }
    await becomes(of, 0)
  })

  test('the pool closes a connection that was idle for a while', async () => {
    await using leases = pool({ idleMs: 20 })
    const of = await target()
    await give(await leases.take(of, NEVER))
    await becomes(of, 0)
    await give(await leases.take(of, NEVER))
  })

  test('changed settings close idle connections immediately, and leased connections when they are returned', async () => {
    const of = await target()
    const [idle, busy] = await Promise.all([rooms.leases.take(of, NEVER), rooms.leases.take(of, NEVER)])
    await give(idle)
    await changeDatasource(rooms, call(), of, { host: 'localhost', password: postgres.password })
    await becomes(of, 1)
    await give(busy)
    await becomes(of, 0)
    await assert.doesNotReject(async () => give(await rooms.leases.take(await at(of.id), NEVER)))
    // A caller that read the datasource before the change cannot open the old connection again.
    await assert.rejects(rooms.leases.take(of, NEVER), { code: 'OVERLOADED' })
  })

  test('disabling a datasource and shutting down close all connections', async () => {
    const of = await target()
    await give(await rooms.leases.take(of, NEVER))
    await disableDatasource(rooms, call(), of)
    await becomes(of, 0)
    const leases = pool({})
    await give(await leases.take(of, NEVER))
    await leases[Symbol.asyncDispose]()
    await becomes(of, 0)
    await assert.rejects(leases.take(of, NEVER), { code: 'OVERLOADED' })
  })

  test('a connection that cannot be opened does not take a place in the pool', async () => {
    await using leases = pool({ connectionsMax: 1 })
    const of = await target()
    const dead = { ...of, row: { ...of.row, port: 1 } }
    for (let tried = 0; tried < 3; tried++) {
      await assert.rejects(leases.take(dead, NEVER), { code: 'DATASOURCE_UNAVAILABLE' })
    }
  })
})
