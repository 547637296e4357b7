import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { addMember, addTeam, openRooms, sessionCall, type Rooms } from '../../test/support/connected.ts'
import { startPostgres, type TestPostgres } from '../../test/support/postgres.ts'
import { DIALECTS, storeSource, type StoreConfig, type StoreSource } from '../../test/support/stores.ts'
import { createDatasource } from '../datasources/datasources.ts'
import { introspectDatasource } from '../introspection/introspect-job.ts'
import { reach } from '../datasources/require-reach.ts'
import type { DatasourceId, JobId } from '../ids.ts'
import { putExposure } from '../exposure/exposure.ts'
import { openReplays, previewExposure, resumePreviews, type Preview, type PreviewDeps } from './preview.ts'

const names = (...columns: string[]) => ({ tables: [{ schema: 'public', table: 'a', columns }] })

for (const dialect of DIALECTS) {
  describe(`a preview on ${dialect}`, () => {
    let postgres: TestPostgres
    let database: string
    let source: StoreSource
    before(async () => {
      postgres = await startPostgres()
      database = await postgres.createDatabase(`preview_${dialect}`, 'CREATE TABLE a (x int, y int)')
      source = await storeSource(dialect)
    })
    after(async () => {
      await source[Symbol.asyncDispose]()
      await postgres[Symbol.asyncDispose]()
    })

    async function opened(at?: StoreConfig) {
      const config = at ?? (await source.config())
      const rooms = await openRooms({ at: config })
      const deps = { ...rooms, replays: openReplays() }
      resumePreviews(deps)
      return { config, rooms, deps, [Symbol.asyncDispose]: () => rooms[Symbol.asyncDispose]() }
    }

    /**
     * Creates a datasource that exposes only column x. Records `count` queries for x and `count` for y in the audit,
     * about half of them equal.
     */
    async function asked(rooms: Rooms, count: number) {
      const teamId = await addTeam(rooms)
      const owner = await addMember(rooms, teamId, 'OWNER')
      const call = sessionCall(owner.accountId, 'previewExposure')
      const { host, port, superuser: username, password } = postgres
      const where = { connectionMode: 'DIRECT', sslMode: 'disable', host, port, username, password, database }
      const item = await createDatasource(rooms, call, owner, { name: 'shop', type: 'POSTGRES', ...where })
      const id = item.id as DatasourceId
      const at = () => reach(rooms, call, teamId, id)
      await introspectDatasource(rooms, call, await at())
      await putExposure(rooms, call, await at(), names('x'))
      const queried = sessionCall(owner.accountId, 'runQuery')
      for (let n = 0; n < count; n++) {
        const shape = n % 2 === 0 ? 1 : n
        for (const column of ['x', 'y']) {
          const query = `SELECT ${column} AS c${shape} FROM a`
          rooms.audit.record(queried, { teamId, datasourceId: id, outcome: 'ANSWERED', query })
        }
      }
      await rooms.audit.flush()
      return {
        id,
        at,
        call,
        begin: async (deps: PreviewDeps, ...columns: string[]) =>
          previewExposure(deps, call, await at(), { ...names(...columns), days: 1 }),
      }
    }

    /** Takes all turns, so that previews wait. */
    async function allTurns(deps: PreviewDeps) {
      const turns = new DisposableStack()
      for (const key of ['one', 'other']) turns.use(await deps.replays.take(key))
      return turns
    }

    async function ended(rooms: Rooms, id: DatasourceId, jobId: JobId) {
      for (;;) {
        const job = await rooms.jobs.find(id, jobId)
        assert.ok(job)
        if (job.state !== 'RUNNING') return job
        await new Promise(setImmediate)
      }
    }

    test('a preview waits for earlier previews, and can be cancelled while it waits and while it runs', async () => {
      await using world = await opened()
      const { rooms, deps } = world
      const shop = await asked(rooms, 300)
      const turns = await allTurns(deps)
      const waiting = await shop.begin(deps, 'y')
      assert.deepEqual(await shop.begin(deps, 'y'), waiting, 'an equal request shares the job')
      const next = await shop.begin(deps, 'x', 'y')
      assert.notEqual(next.jobId, waiting.jobId)
      await rooms.jobs.cancel(shop.id, waiting.jobId)
      assert.deepEqual((await ended(rooms, shop.id, waiting.jobId)).state, 'CANCELLED')
      assert.equal((await rooms.jobs.find(shop.id, next.jobId))?.done, 0)
      turns.dispose()
      let job = await rooms.jobs.find(shop.id, next.jobId)
      while (job?.state === 'RUNNING' && job.done === 0) {
        await new Promise(setImmediate)
        job = await rooms.jobs.find(shop.id, next.jobId)
      }
      assert.ok((job?.done ?? 0) > 0 && job?.total === 600)
      await rooms.jobs.cancel(shop.id, next.jobId)
      const cancelled = await ended(rooms, shop.id, next.jobId)
      assert.deepEqual([cancelled.state, cancelled.result], ['CANCELLED', undefined])
      assert.ok(cancelled.done < 600)
      const last = await shop.begin(deps, 'y')
      assert.equal((await ended(rooms, shop.id, last.jobId)).state, 'DONE')
    })

    test('previews of one owner run one after the other, and a preview of another owner does not wait for them', async () => {
      await using world = await opened()
      const { rooms, deps } = world
      const [eve, vic] = [await asked(rooms, 1), await asked(rooms, 1)]
      const turn = await deps.replays.take(eve.call.caller.accountId)
      const waiting = await eve.begin(deps, 'y')
      const other = await vic.begin(deps, 'y')
      assert.equal((await ended(rooms, vic.id, other.jobId)).state, 'DONE')
      assert.equal((await rooms.jobs.find(eve.id, waiting.jobId))?.done, 0)
      turn[Symbol.dispose]()
      assert.equal((await ended(rooms, eve.id, waiting.jobId)).state, 'DONE')
    })

    test('a long preview lets a short preview of another owner work in between', async () => {
      await using world = await opened()
      const { rooms } = world
      const deps = { ...rooms, replays: openReplays(), turnMs: 0 }
      resumePreviews(deps)
      const [eve, vic] = [await asked(rooms, 50), await asked(rooms, 1)]
      using _turn = await deps.replays.take('one')
      const long = await eve.begin(deps, 'y')
      const short = await vic.begin(deps, 'y')
      assert.equal((await ended(rooms, vic.id, short.jobId)).state, 'DONE')
      const { state, done } = (await rooms.jobs.find(eve.id, long.jobId)) ?? {}
      assert.equal(state, 'RUNNING')
      assert.ok(done !== undefined && done < 100, String(done))
      assert.deepEqual((await ended(rooms, eve.id, long.jobId)).done, 100)
    })

    test('at most three different previews of one datasource are accepted at the same time', async () => {
      await using world = await opened()
      const { rooms, deps } = world
      const shop = await asked(rooms, 1)
      const turns = await allTurns(deps)
      const all = [await shop.begin(deps, 'x'), await shop.begin(deps, 'y'), await shop.begin(deps, 'x', 'y')]
      assert.deepEqual(await shop.begin(deps, 'y'), all[1], 'an equal request does not count')
      await assert.rejects(previewExposure(deps, shop.call, await shop.at(), { tables: [], days: 1 }), {
        code: 'CONFLICT',
      })
      turns.dispose()
      for (const { jobId } of all) assert.equal((await ended(rooms, shop.id, jobId)).state, 'DONE')
    })

    test('a preview resumes after a restart and counts every query', async () => {
      const config = await source.config()
      let started: { readonly jobId: JobId }
      let id: DatasourceId
      {
        await using world = await opened(config)
        const shop = await asked(world.rooms, 150)
        id = shop.id
        started = await shop.begin(world.deps, 'y')
      }
      await using world = await opened(config)
      const job = await ended(world.rooms, id, started.jobId)
      assert.deepEqual([job.state, job.done, job.total], ['DONE', 300, 300])
      const { nowRefused, nowAllowed, cannotTell } = job.result as Preview
      assert.deepEqual([nowRefused.count, nowAllowed.count, cannotTell.count], [150, 150, 0])
      assert.deepEqual([nowRefused.auditIds.length, new Set(nowAllowed.auditIds).size], [100, 100])
      const row = await world.rooms.store.db
        .selectFrom('jobs')
        .select('input')
        .where('id', '=', started.jobId)
        .executeTakeFirst()
      assert.equal(row?.input, null, 'the input is deleted')
    })

    test('a preview ends when its datasource is deleted', async () => {
      await using world = await opened()
      const { rooms, deps } = world
      const shop = await asked(rooms, 2)
      const turns = await allTurns(deps)
      const begun = await shop.begin(deps, 'y')
      await rooms.store.write((tx) => tx.deleteFrom('datasources').where('id', '=', shop.id).execute())
      await rooms.jobs.endAll(shop.id)
      assert.equal(await rooms.jobs.find(shop.id, begun.jobId), null)
      turns.dispose()
    })
  })
}
