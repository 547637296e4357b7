import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Client } from 'pg'
import { addMember, addTeam, openRooms, sessionCall, type Rooms } from '../../test/support/connected.ts'
import { startPostgres, type TestPostgres } from '../../test/support/postgres.ts'
import { DIALECTS, storeSource, type StoreConfig, type StoreSource } from '../../test/support/stores.ts'
import { putExposure } from '../exposure/exposure.ts'
import type { DatasourceId, TeamId } from '../ids.ts'
import type { Membership } from '../teams/require-membership.ts'
import {
  changeDatasource,
  createDatasource,
  deleteDatasource,
  disableDatasource,
  enableDatasource,
} from '../datasources/datasources.ts'
import { introspectDatasource } from './introspect-job.ts'
import { reach } from '../datasources/require-reach.ts'
import { until } from '../../test/support/until.ts'
import { openReintrospection } from './scheduled-introspection.ts'

const HOUR = 3_600_000
const MINUTE = 60_000

for (const dialect of DIALECTS) {
  describe(`scheduled introspection on ${dialect}`, () => {
    let postgres: TestPostgres
    let source: StoreSource
    let databases = 0
    before(async () => {
      postgres = await startPostgres()
      source = await storeSource(dialect)
    })
    after(async () => {
      await source[Symbol.asyncDispose]()
      await postgres[Symbol.asyncDispose]()
    })

    /** Opens a store, with a clock that only the test advances. */
    async function opened(at?: StoreConfig) {
      const config = at ?? (await source.config())
      const rooms = await openRooms({ at: config })
      const clock = { ms: Date.now() }
      const scheduled = (by: Rooms = rooms) => openReintrospection({ ...by, now: () => clock.ms })
      return { config, rooms, clock, scheduled, [Symbol.asyncDispose]: () => rooms[Symbol.asyncDispose]() }
    }

    /** Makes all catalogs of a datasource `ms` old. */
    async function age(rooms: Rooms, id: DatasourceId, ms: number): Promise<void> {
      const set = { captured_at: new Date(Date.now() - ms).toISOString() }
      await rooms.store.write((tx) => tx.updateTable('catalogs').set(set).where('datasource_id', '=', id).execute())
    }

    interface Beside {
      readonly teamId: TeamId
      readonly owner: Membership
      readonly database: string
    }

    async function connected(rooms: Rooms, config: object = {}, beside?: Beside) {
      const teamId = beside?.teamId ?? (await addTeam(rooms))
      const owner = beside?.owner ?? (await addMember(rooms, teamId, 'OWNER'))
      const database =
        beside?.database ?? (await postgres.createDatabase(`again_${dialect}_${++databases}`, 'CREATE TABLE a (x int)'))
      const call = sessionCall(owner.accountId, 'introspectDatasource')
      const item = await createDatasource(rooms, call, owner, {
        name: 'shop',
        type: 'POSTGRES',
        connectionMode: 'DIRECT',
        sslMode: 'disable',
        host: postgres.host,
        port: postgres.port,
        username: postgres.superuser,
        password: postgres.password,
        database,
        config,
      })
      return { ...of(rooms, owner, teamId, item.id as DatasourceId), database }
    }

    function of(rooms: Rooms, owner: Membership, teamId: TeamId, id: DatasourceId) {
      const call = sessionCall(owner.accountId, 'introspectDatasource')
      const at = () => reach(rooms, call, teamId, id)
      return {
        id,
        call,
        at,
        owner,
        teamId,
        row: async () => (await at()).row,
        introspect: async () => introspectDatasource(rooms, call, await at()),
      }
    }

    test('a scheduled introspection runs the configured hours after the last one, or up to a tenth later', async () => {
      await using world = await opened()
      const shop = await connected(world.rooms, { reintrospectHours: 10 })
      await using scheduled = world.scheduled()
      const versionAfter = async (ms: number) => {
        await age(world.rooms, shop.id, ms)
        await scheduled.run()
        world.rooms.store.forget()
        return (await shop.row()).catalog_version
      }
      assert.equal(await versionAfter(100 * HOUR), 0, 'never introspected')
      await shop.introspect()
      assert.equal(await versionAfter(10 * HOUR - MINUTE), 1)
      assert.equal(await versionAfter(11 * HOUR + MINUTE), 2)
      assert.equal(await versionAfter(0), 2)
      assert.equal(await versionAfter(11 * HOUR + MINUTE), 3)
      await changeDatasource(world.rooms, shop.call, await shop.at(), { config: { reintrospectHours: 0 } })
      assert.equal(await versionAfter(10_000 * HOUR), 3, 'never')
      await changeDatasource(world.rooms, shop.call, await shop.at(), { config: { reintrospectHours: 720 } })
      assert.equal(await versionAfter(719 * HOUR), 3)
      await disableDatasource(world.rooms, shop.call, await shop.at())
      assert.equal(await versionAfter(10_000 * HOUR), 3, 'disabled')
      await enableDatasource(world.rooms, shop.call, await shop.at())
      assert.equal(await versionAfter(10_000 * HOUR), 4)
    })

    test('an introspection finds a new column, and keeps the catalog of the exposure and the two newest catalogs', async () => {
      await using world = await opened()
      const { rooms } = world
      const shop = await connected(rooms)
      await shop.introspect()
      await putExposure(rooms, shop.call, await shop.at(), {
        tables: [{ schema: 'public', table: 'a', columns: null }],
      })
      await postgres.query(shop.database, 'ALTER TABLE a ADD y int')
      await using scheduled = world.scheduled()
      for (let n = 0; n < 4; n++) {
        await age(rooms, shop.id, 27 * HOUR)
        await scheduled.run()
        rooms.store.forget()
      }
      const kept = await rooms.store.db
        .selectFrom('catalogs')
        .select('version')
        .where('datasource_id', '=', shop.id)
        .execute()
      assert.deepEqual(kept.map((it) => it.version).sort(), [1, 4, 5])
      const { captured_at: _, ...counts } = await rooms.store.db
        .selectFrom('catalog_counts')
        .selectAll()
        .where('datasource_id', '=', shop.id)
        .executeTakeFirstOrThrow()
      const versions = { catalog_version: 5, exposure_version: 1 }
      assert.deepEqual(counts, { datasource_id: shop.id, ...versions, tables: 1, exposed_tables: 1, drift: 1 })
      assert.equal((await rooms.catalogs.baseline(await shop.row()))?.tables[0]?.columns.length, 1)
      assert.equal((await rooms.catalogs.full(await shop.row()))?.tables[0]?.columns.length, 2)
      assert.equal((await rooms.catalogs.exposed(await shop.row()))?.tables[0]?.columns.length, 1)
    })

    test('the introspection of an unreachable database is retried with backoff, and sets the status ERROR until it succeeds', async () => {
      await using world = await opened()
      const { rooms, clock } = world
      const shop = await connected(rooms)
      await shop.introspect()
      await postgres.query('postgres', `ALTER DATABASE ${shop.database} RENAME TO gone_${dialect}`)
      await using scheduled = world.scheduled()
      await age(rooms, shop.id, 27 * HOUR)
      const start = Date.now()
      const failuresAt = async (ms: number) => {
        clock.ms = start + ms
        await scheduled.run()
        rooms.store.forget()
        const state = await rooms.store.db.selectFrom('reintrospections').selectAll().executeTakeFirst()
        return state?.failures ?? 0
      }
      assert.equal(await failuresAt(0), 1)
      const { status, last_error: error } = await shop.row()
      assert.equal(status, 'ERROR')
      assert.ok(error !== null && !error.includes(shop.database))
      assert.equal(await failuresAt(14 * MINUTE), 1)
      assert.equal(await failuresAt(16 * MINUTE), 2)
      assert.equal(await failuresAt(45 * MINUTE), 2)
      assert.equal(await failuresAt(47 * MINUTE), 3)
      await postgres.query('postgres', `ALTER DATABASE gone_${dialect} RENAME TO ${shop.database}`)
      assert.equal(await failuresAt(110 * MINUTE), 0)
      const row = await shop.row()
      assert.deepEqual([row.status, row.last_error, row.catalog_version], ['CONNECTED', null, 2])
    })

    test('a restart of the service neither triggers nor skips a scheduled introspection', async () => {
      const config = await source.config()
      let shop: Awaited<ReturnType<typeof connected>>
      {
        await using world = await opened(config)
        shop = await connected(world.rooms)
        await shop.introspect()
      }
      await using world = await opened(config)
      const again = of(world.rooms, shop.owner, shop.teamId, shop.id)
      await using scheduled = world.scheduled()
      await scheduled.run()
      assert.equal((await again.row()).catalog_version, 1)
      await age(world.rooms, shop.id, 27 * HOUR)
      await scheduled.run()
      world.rooms.store.forget()
      assert.equal((await again.row()).catalog_version, 2)
    })

    test('an introspection that another process has claimed is not run until the claim expires', async () => {
      await using world = await opened()
      const { rooms, clock } = world
      const shop = await connected(rooms)
      await shop.introspect()
      await age(rooms, shop.id, 27 * HOUR)
      const claim = {
        claimed_until: new Date(clock.ms + MINUTE).toISOString(),
        failures: 0,
        retry_at: null,
        error: null,
      }
      await rooms.store.write((tx) =>
        tx
          .insertInto('reintrospections')
          .values({ datasource_id: shop.id, ...claim })
          .execute(),
      )
      await using scheduled = world.scheduled()
      await scheduled.run()
      rooms.store.forget()
      assert.equal((await shop.row()).catalog_version, 1)
      clock.ms += 2 * MINUTE
      await scheduled.run()
      rooms.store.forget()
      assert.equal((await shop.row()).catalog_version, 2)
    })

    test('slow databases of one owner do not delay the introspections of other owners', async () => {
      await using world = await opened()
      const { rooms } = world
      const slow = [await connected(rooms)]
      for (let n = 0; n < 3; n++) slow.push(await connected(rooms, {}, slow[0]))
      const other = await connected(rooms)
      for (const each of [...slow, other]) await each.introspect()
      for (const each of slow) await age(rooms, each.id, 100 * HOUR)
      await age(rooms, other.id, 50 * HOUR)
      await using _locker = await lockedCatalog(slow[0]?.database ?? '')
      await using scheduled = world.scheduled()
      const ended = scheduled.run()
      await until('the introspection of the other owner', async () => {
        rooms.store.forget()
        return (await other.row()).catalog_version === 2
      })
      const counts = await Promise.all(slow.map((each) => running(rooms, each.id)))
      assert.equal(counts.filter((count) => count > 0).length, 2)
      await scheduled[Symbol.asyncDispose]()
      await ended
    })

    test('callers share a scheduled introspection, and it is cancelled by delete, disable and shutdown', async () => {
      await using world = await opened()
      const { rooms, clock } = world
      const shop = await connected(rooms)
      await shop.introspect()
      await using _locker = await lockedCatalog(shop.database)
      await age(rooms, shop.id, 27 * HOUR)
      const claims = async () => rooms.store.db.selectFrom('reintrospections').selectAll().execute()
      /** Waits until an introspection has started. Returns a promise that resolves when it ends. */
      const begun = async (scheduled: ReturnType<typeof world.scheduled>) => {
        const ended = scheduled.run()
        while ((await running(rooms, shop.id)) === 0) await new Promise(setImmediate)
        return { ended }
      }
      const ending = world.scheduled()
      const first = await begun(ending)
      const newest = async () =>
        (await rooms.audit.page(shop.teamId, { datasourceIds: [shop.id], limit: 1 })).items[0]?.id
      const before = await newest()
      const shared = assert.rejects(introspectDatasource(rooms, shop.call, await shop.at()), { code: 'CONFLICT' })
      // A caller who joins an introspection is recorded in the audit before the introspection ends.
      while ((await newest()) === before) await rooms.audit.flush().then(() => new Promise(setImmediate))
      await ending[Symbol.asyncDispose]()
      await first.ended
      await shared
      assert.deepEqual(
        (await claims()).map((it) => [it.claimed_until, it.failures]),
        [[null, 0]],
      )

      await using scheduled = world.scheduled()
      const second = await begun(scheduled)
      await disableDatasource(rooms, shop.call, await shop.at())
      await second.ended
      assert.equal((await shop.row()).catalog_version, 1)
      await enableDatasource(rooms, shop.call, await shop.at())
      clock.ms += HOUR
      const third = await begun(scheduled)
      await deleteDatasource(rooms, shop.call, await shop.at())
      await third.ended
      await until('the claim is deleted', async () => (await claims()).length === 0)
    })

    test('a shutdown does not wait for an introspection that a caller started', async () => {
      await using world = await opened()
      const { rooms } = world
      const shop = await connected(rooms)
      await shop.introspect()
      await age(rooms, shop.id, 27 * HOUR)
      const locker = await lockedCatalog(shop.database)
      const asked = introspectDatasource(rooms, shop.call, await shop.at())
      const ending = world.scheduled()
      const ended = ending.run()
      while ((await rooms.store.db.selectFrom('reintrospections').selectAll().execute()).length === 0) {
        await new Promise(setImmediate)
      }
      await ending[Symbol.asyncDispose]()
      await ended
      assert.equal(await running(rooms, shop.id), 1)
      await locker[Symbol.asyncDispose]()
      assert.ok('tableCount' in (await asked))
    })

    async function running(rooms: Rooms, id: DatasourceId): Promise<number> {
      const { store } = rooms
      const jobs = store.db
        .selectFrom('jobs')
        .select('id')
        .where('datasource_id', '=', id)
        .where('state', '=', 'RUNNING')
      return (await jobs.where('kind', '=', 'introspect').execute()).length
    }

    /** Takes a lock that makes introspections of the database wait. */
    async function lockedCatalog(database: string) {
      const client = new Client({ connectionString: postgres.url(database) })
      await client.connect()
      client.on('error', () => undefined)
      await client.query('BEGIN; LOCK TABLE pg_catalog.pg_description IN ACCESS EXCLUSIVE MODE')
      return { [Symbol.asyncDispose]: () => client.end() }
    }
  })
}

test('if two processes share a PostgreSQL store, only one of them runs each due introspection', async () => {
  await using postgres = await startPostgres()
  await using source = await storeSource('postgres')
  const at = await source.config()
  await using one = await openRooms({ at })
  await using other = await openRooms({ at })
  const teamId = await addTeam(one)
  const owner = await addMember(one, teamId, 'OWNER')
  const call = sessionCall(owner.accountId, 'introspectDatasource')
  const database = await postgres.createDatabase('several', 'CREATE TABLE a (x int)')
  const ids: DatasourceId[] = []
  for (let n = 0; n < 8; n++) {
    const { host, port, superuser: username, password } = postgres
    const item = await createDatasource(one, call, owner, {
      name: `shop ${n}`,
      type: 'POSTGRES',
      ...{ connectionMode: 'DIRECT', sslMode: 'disable', host, port, username, password, database },
    })
    ids.push(item.id as DatasourceId)
    await introspectDatasource(one, call, await reach(one, call, teamId, item.id as DatasourceId))
  }
  const old = { captured_at: new Date(Date.now() - 27 * HOUR).toISOString() }
  await one.store.write((tx) => tx.updateTable('catalogs').set(old).execute())
  await using a = openReintrospection(one)
  await using b = openReintrospection(other)
  await Promise.all([a.run(), b.run(), a.run()])
  const rows = await one.store.db.selectFrom('datasources').select('catalog_version').where('id', 'in', ids).execute()
  assert.deepEqual(
    rows.map((row) => row.catalog_version),
    ids.map(() => 2),
  )
  const jobs = await one.store.db.selectFrom('jobs').select('state').execute()
  assert.deepEqual([jobs.length, new Set(jobs.map((job) => job.state))], [16, new Set(['DONE'])])
})
