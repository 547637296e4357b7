import assert from 'node:assert/strict'
import { test } from 'node:test'
import { datasourceRow, teamRow } from '../../test/support/rows.ts'
import { DIALECTS, storeSource } from '../../test/support/stores.ts'
import { AppError } from '../errors.ts'
import { newId, type AccountId, type DatasourceId, type JobId, type TeamId } from '../ids.ts'
import { openStore, type Store } from '../store/open.ts'
import { openJobs, type Work } from './jobs.ts'

async function datasource(store: Store): Promise<DatasourceId> {
  const teamId = newId<TeamId>()
  const row = datasourceRow(teamId)
  await store.write(async (tx) => {
    await tx.insertInto('teams').values(teamRow(teamId)).execute()
    await tx.insertInto('datasources').values(row).execute()
  })
  return row.id
}

/** Ends only when its signal aborts. */
const endless: Work = (_progress, signal) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

test('a job returns its result to callers that wait and to callers that ask later', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.config())
  await using jobs = await openJobs({ store })
  const id = await datasource(store)
  const job = await jobs.start(id, 'count', async (progress) => {
    progress(3, 4)
    return { found: 4 }
  })
  assert.deepEqual(await job.ended(), { found: 4 })
  const state = await jobs.find(id, job.id)
  assert.deepEqual(
    [state?.state, state?.kind, state?.done, state?.total, state?.result],
    ['DONE', 'count', 3, 4, { found: 4 }],
  )
})

test('a running job shows its step and who started it, and an ended job shows only who started it', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.config())
  await using jobs = await openJobs({ store })
  const [id, gone] = [await datasource(store), newId<AccountId>()]
  const by = { caller: { accountId: gone }, teamId: newId<TeamId>() }
  const { promise: reached, resolve } = Promise.withResolvers<void>()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const work: Work = async (progress) => {
    progress(1, 3, 'public.orders')
    progress(2, 3)
    resolve()
    await released
  }
  const job = await jobs.start(id, 'look', work, by)
  await reached
  const startedBy = { accountId: gone, name: null }
  const [running] = await jobs.list(id, { state: 'RUNNING' })
  assert.deepEqual([running?.done, running?.step, running?.startedBy], [2, 'public.orders', startedBy])
  release()
  await job.ended()
  const [ended] = await jobs.list(id, { kind: 'look' })
  assert.deepEqual([ended?.state, ended?.step, ended?.startedBy], ['DONE', null, startedBy])
  assert.deepEqual(await jobs.list(await datasource(store), {}), [], 'jobs of another datasource are not listed')
  const own = await jobs.start(id, 'count', async () => null)
  await own.ended()
  assert.equal((await jobs.find(id, own.id))?.startedBy, null)
})

test('a failed job reports the message of an AppError, but no message of other errors', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.config())
  await using jobs = await openJobs({ store })
  const id = await datasource(store)
  for (const [error, message] of [
    [new AppError('DATASOURCE_UNAVAILABLE', 'It is down.'), 'It is down.'],
    [new Error('password=hunter2'), 'The job failed because of a bug in the service.'],
  ] as const) {
    const job = await jobs.start(id, 'fail', async () => {
      throw error
    })
    await assert.rejects(job.ended(), error)
    const state = await jobs.find(id, job.id)
    assert.deepEqual([state?.state, state?.error], ['FAILED', message])
  }
})

for (const dialect of DIALECTS) {
  test(`the hundred jobs of a datasource that ended last are kept on ${dialect}`, async () => {
    await using source = await storeSource(dialect)
    await using store = await openStore(await source.config())
    await using jobs = await openJobs({ store })
    const [id, other] = [await datasource(store), await datasource(store)]
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const long = await jobs.start(id, 'long', () => released)
    const theirs = await jobs.start(other, 'count', () => Promise.resolve(1))
    const brief = async () => {
      const job = await jobs.start(id, 'count', () => Promise.resolve(1))
      await job.ended()
      return job.id
    }
    const first = await brief()
    for (let n = 0; n < 110; n++) await brief()
    release()
    await long.ended()
    const last = await brief()
    const { count } = await store.db
      .selectFrom('jobs')
      .select((eb) => eb.fn.countAll().as('count'))
      .where('datasource_id', '=', id)
      .executeTakeFirstOrThrow()
    assert.equal(Number(count), 101)
    assert.equal(await jobs.find(id, first), null)
    for (const [at, job] of [
      [id, long.id],
      [id, last],
      [other, theirs.id],
    ] as const) {
      assert.equal((await jobs.find(at, job))?.state, 'DONE')
    }
  })
}

test('concurrent requests share a job, but another kind or another datasource gets its own job', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.config())
  await using jobs = await openJobs({ store })
  const [a, b] = [await datasource(store), await datasource(store)]
  const [one, two, other, third] = await Promise.all([
    jobs.start(a, 'look', endless),
    jobs.start(a, 'look', endless),
    jobs.start(b, 'look', endless),
    jobs.start(a, 'count', endless),
  ])
  assert.equal(one.id, two.id)
  assert.equal(new Set([one.id, other.id, third.id]).size, 3)
})

test('a cancelled job ends and stays CANCELLED, and cancelling a job of another datasource finds no job', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.config())
  await using jobs = await openJobs({ store })
  const [id, other] = [await datasource(store), await datasource(store)]
  const job = await jobs.start(id, 'look', endless)
  assert.equal((await jobs.find(id, job.id))?.state, 'RUNNING')
  assert.equal(await jobs.find(other, job.id), null)
  assert.equal(await jobs.cancel(other, job.id), false)
  assert.equal(await jobs.cancel(id, newId<JobId>()), false)
  assert.equal(await jobs.cancel(id, job.id), true)
  await assert.rejects(job.ended())
  assert.equal((await jobs.find(id, job.id))?.state, 'CANCELLED')
  assert.notEqual((await jobs.start(id, 'look', endless)).id, job.id)
})

test('endAll() ends all jobs of a datasource, even those without a row in the store, but no jobs of other datasources', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.config())
  await using jobs = await openJobs({ store })
  const [id, other] = [await datasource(store), await datasource(store)]
  const mine = [await jobs.start(id, 'look', endless), await jobs.start(id, 'count', endless)]
  const theirs = await jobs.start(other, 'look', endless)
  await store.write((tx) => tx.deleteFrom('datasources').where('id', '=', id).execute())
  await jobs.endAll(id)
  await Promise.all(mine.map((job) => assert.rejects(job.ended())))
  assert.equal((await jobs.find(other, theirs.id))?.state, 'RUNNING')
})

test('a job that is not resumable becomes FAILED when the service stops or dies', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.config())
  const id = await datasource(store)
  const ended = await openJobs({ store })
  const job = await ended.start(id, 'look', endless)
  await ended[Symbol.asyncDispose]()
  const died = newId<JobId>()
  const at = '2026-01-01T00:00:00.000Z'
  await store.append((tx) =>
    tx
      .insertInto('jobs')
      .values({
        id: died,
        datasource_id: id,
        kind: 'look',
        state: 'RUNNING',
        done: 0,
        total: 0,
        result: null,
        error: null,
        created_at: new Date().toISOString(),
        updated_at: new Date(Date.now() + 0).toISOString(),
      })
      .execute(),
  )
  await using jobs = await openJobs({ store })
  for (const each of [job.id, died]) {
    const state = await jobs.find(id, each)
    assert.equal(state?.state, 'FAILED')
    assert.match(state?.error ?? '', /restarted/)
    assert.ok((state?.updatedAt ?? '') > at)
  }
})

for (const dialect of DIALECTS) {
  test(`on ${dialect}, the next process resumes a resumable job with its input`, async () => {
    await using source = await storeSource(dialect)
    const config = await source.config()
    await using store = await openStore(config)
    const id = await datasource(store)
    const first = await openJobs({ store })
    first.resumable('count', () => endless)
    const begun = await first.begin(id, 'count', { upTo: 3 }, 2)
    assert.ok(begun)
    assert.deepEqual([(await first.begin(id, 'count', { upTo: 3 }, 1))?.id, begun.isShared], [begun.id, false])
    assert.equal(await first.begin(id, 'count', { upTo: 4 }, 1), null)
    await assert.rejects(first.begin(id, 'other', {}, 1), { code: 'INTERNAL' })
    await first[Symbol.asyncDispose]()
    await assert.rejects(begun.ended())
    assert.equal((await first.find(id, begun.id))?.state, 'RUNNING')

    // Only one of two processes resumes the job.
    await using one = await openJobs({ store })
    await using other = await openJobs({ store })
    const seen: unknown[] = []
    for (const jobs of [one, other]) {
      jobs.resumable('count', (of, input) => async () => {
        seen.push([of, input])
        return 'counted'
      })
    }
    let job = await one.find(id, begun.id)
    while (job?.state === 'RUNNING') {
      await new Promise(setImmediate)
      job = await one.find(id, begun.id)
    }
    assert.deepEqual([job?.state, job?.result, seen], ['DONE', 'counted', [[id, { upTo: 3 }]]])
  })
}

test('a job that was cancelled by this or another process is not resumed', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.config())
  const id = await datasource(store)
  const first = await openJobs({ store })
  first.resumable('count', () => endless)
  const [cancelled, ended] = [await first.begin(id, 'count', 1, 2), await first.begin(id, 'count', 2, 2)]
  assert.ok(cancelled && ended)
  await first.cancel(id, cancelled.id)
  await using other = await openJobs({ store })
  await other.endAll(id)
  await first[Symbol.asyncDispose]()
  other.resumable('count', () => () => assert.fail('it was ended'))
  const states = await Promise.all([cancelled, ended].map((job) => other.find(id, job.id)))
  assert.deepEqual(
    states.map((job) => job?.state),
    ['CANCELLED', 'CANCELLED'],
  )
})

test('a request after the work has ended gets a new job, even if the end is not stored yet', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.config())
  const { promise: gate, resolve: open } = Promise.withResolvers<void>()
  let isHeld = false
  const append: Store['append'] = async (work, isolation) => {
    const value = await store.append(work, isolation)
    if (isHeld) await gate
    return value
  }
  await using jobs = await openJobs({ store: { ...store, append } })
  const id = await datasource(store)
  const first = await jobs.start(id, 'look', async () => void (isHeld = true))
  while ((await jobs.find(id, first.id))?.state !== 'DONE');
  isHeld = false
  const second = await jobs.start(id, 'look', async () => 'again')
  assert.notEqual(second.id, first.id)
  open()
  assert.equal(await second.ended(), 'again')
})

test('on a PostgreSQL store, only one of two processes runs a kind of job for a datasource at a time', async () => {
  await using source = await storeSource('postgres')
  const config = await source.config()
  await using here = await openStore(config)
  await using there = await openStore(config)
  await using one = await openJobs({ store: here })
  await using other = await openJobs({ store: there })
  const id = await datasource(here)
  for (const jobs of [one, other]) jobs.resumable('count', () => endless)

  for (const input of [1, 2, 3, 4, 5]) {
    const both = await Promise.all([one, other].map((jobs, n) => jobs.begin(id, 'count', [input, n], 1)))
    const [begun, ...more] = both.filter((job) => job !== null)
    assert.ok(begun && more.length === 0, 'of two requests one is accepted')
    assert.ok(await one.cancel(id, begun.id))
    assert.ok(await other.cancel(id, begun.id))
    await assert.rejects(begun.ended())
  }

  const same = await Promise.all([one, other, one].map((jobs) => jobs.begin(id, 'count', 'same', 1)))
  assert.equal(new Set(same.map((job) => job?.id)).size, 1)
  assert.equal(same.filter((job) => job?.isShared).length, 2)
  assert.equal(await other.begin(id, 'count', 'another', 1), null)
  assert.notEqual((await other.begin(id, 'count', 'another', 2))?.id, same[0]?.id)

  const { promise: gate, resolve: open } = Promise.withResolvers<string>()
  const mine = await one.start(id, 'look', () => gate)
  const shared = await other.start(id, 'look', () => assert.fail('it runs elsewhere'))
  assert.deepEqual([shared.id, shared.isShared, shared.isElsewhere], [mine.id, true, true])
  const seen = shared.ended()
  open('seen')
  assert.equal(await seen, 'seen')
  const { promise: broken, reject: fail } = Promise.withResolvers<never>()
  const failing = await one.start(id, 'look', () => broken)
  const joined = await other.start(id, 'look', () => assert.fail('it runs elsewhere'))
  const ends = [failing, joined].map((job) => assert.rejects(job.ended(), { message: 'It is broken.' }))
  fail(new AppError('QUERY_FAILED', 'It is broken.'))
  await Promise.all(ends)
})

test('an abandoned job does not block new jobs, unless it is resumable', async () => {
  await using source = await storeSource('postgres')
  const config = await source.config()
  await using store = await openStore(config)
  await using jobs = await openJobs({ store })
  jobs.resumable('count', () => endless)
  const id = await datasource(store)
  const row = async (kind: string, input: string | null, heardMs: number) => {
    const dead = newId<JobId>()
    const at = new Date(Date.now() - heardMs).toISOString()
    const about = { id: dead, datasource_id: id, kind, input, done: 0, total: 0, result: null, error: null }
    await store.append((tx) =>
      tx
        .insertInto('jobs')
        .values({ ...about, state: 'RUNNING', created_at: at, updated_at: at })
        .execute(),
    )
    return dead
  }
  const dead = await row('look', null, 61_000)
  const job = await jobs.start(id, 'look', endless)
  assert.equal(job.isShared, false)
  assert.equal((await jobs.find(id, dead))?.state, 'FAILED')
  const alive = await row('peek', null, 1_000)
  const shared = await jobs.start(id, 'peek', endless)
  assert.deepEqual([shared.id, shared.isElsewhere], [alive, true])
  const lost = await row('count', '"all"', 61_000)
  assert.equal(await jobs.begin(id, 'count', 'some', 1), null, 'it continues in any process that finds it')
  assert.equal((await jobs.begin(id, 'count', 'all', 1))?.id, lost)
})

test('one account or team runs at most ten jobs at the same time, and other callers can still start jobs', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.config())
  await using jobs = await openJobs({ store })
  const [eve, vic] = [newId<AccountId>(), newId<AccountId>()]
  const start = async (accountId: AccountId, teamId = newId<TeamId>()) => {
    const id = await datasource(store)
    return { id, job: await jobs.start(id, 'look', endless, { caller: { accountId }, teamId }) }
  }
  const first = await start(eve)
  for (let n = 1; n < 10; n++) await start(eve)
  await assert.rejects(start(eve), { code: 'RATE_LIMITED', extra: { retryAfter: 10 } })
  // Joining a job takes no place.
  const by = { caller: { accountId: eve }, teamId: newId<TeamId>() }
  assert.equal((await jobs.start(first.id, 'look', endless, by)).id, first.job.id)
  const team = newId<TeamId>()
  for (let n = 0; n < 8; n++) await start(n < 4 ? vic : newId<AccountId>(), team)
  await assert.rejects(start(newId<AccountId>(), team), { code: 'RATE_LIMITED' })
  // The service itself is not limited, and a job that ends makes room for another job.
  await jobs.start(await datasource(store), 'look', endless)
  await jobs.cancel(first.id, first.job.id)
  await start(newId<AccountId>(), team)
  await jobs.endAll(first.id)
})
