import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { generateDocumentation, resumeGeneration } from './generate-job.ts'
import { getDocumentation } from './drafts.ts'
import type { TryQuery } from './write-proposals.ts'
import { tryQuery } from '../query/try-example-query.ts'
import { openRooms, type Rooms } from '../../test/support/connected.ts'
import { startPostgres, type TestPostgres } from '../../test/support/postgres.ts'
import { Profiled } from '../../test/support/profiled-datasource.ts'
import { DIALECTS, storeSource } from '../../test/support/stores.ts'

const SQL = Array.from({ length: 20 }, (_, n) => `CREATE TABLE t${n} (id int PRIMARY KEY, note text);`).join('\n')

const orderOf = async (server: TestPostgres) => ({
  host: server.host,
  port: server.port,
  database: await server.createDatabase('shop', SQL),
  username: server.superuser,
  password: server.password,
})
/** Stored jobs resume. `tried` is called before each example query runs. */
const withGeneration = (rooms: Rooms, tried: (signal: AbortSignal) => Promise<void> = () => Promise.resolve()) => {
  const run: TryQuery = async (id, query, signal) => {
    await tried(signal)
    return await tryQuery(rooms, id, query, signal)
  }
  const deps = { ...rooms, tryQuery: run, model: null }
  resumeGeneration(deps)
  return deps
}

for (const dialect of DIALECTS) {
  test(`the job resumes after a restart of the service, with the store on ${dialect}`, async () => {
    await using server = await startPostgres()
    await using source = await storeSource(dialect)
    const at = await source.config()
    let shop: Profiled
    let jobId: Awaited<ReturnType<typeof generateDocumentation>>['jobId']
    {
      await using rooms = await openRooms({ at })
      shop = await Profiled.connect(rooms, await orderOf(server), null)
      const { promise: reached, resolve } = Promise.withResolvers<void>()
      let runs = 0
      const deps = withGeneration(rooms, async (signal) => {
        if (++runs < 8) return
        resolve()
        await once(signal, 'abort')
        signal.throwIfAborted()
      })
      ;({ jobId } = await generateDocumentation(deps, shop.call(), await shop.at()))
      await reached
    }
    await using rooms = await openRooms({ at })
    const again = Profiled.again(rooms, shop)
    const before = await getDocumentation(rooms, await again.at())
    assert.ok(before.tables.length >= 1 && before.tables.length < 20, String(before.tables.length))
    const deps = withGeneration(rooms)
    const job = await again.ended(jobId)
    assert.deepEqual([job.state, job.done, job.total], ['DONE', 20, 20])
    const after = await getDocumentation(deps, await again.at())
    assert.equal(after.tables.length, 20)
    assert.ok(after.tables.every((table) => table.statements.length === 1 && table.examples !== null))
    assert.equal(after.publishedAt, null)
  })
}

test('the job fails if the database goes away, and keeps the texts of finished tables', async () => {
  await using server = await startPostgres()
  await using rooms = await openRooms()
  const shop = await Profiled.connect(rooms, await orderOf(server), null)
  let runs = 0
  const deps = withGeneration(rooms, async () => {
    if (++runs === 5) await server.stop()
  })
  const { jobId } = await generateDocumentation(deps, shop.call(), await shop.at())
  const job = await shop.ended(jobId)
  assert.equal(job.state, 'FAILED')
  assert.match(job.error ?? '', /^The (?:database|connection) .*\.$/)
  const { tables, publishedAt } = await getDocumentation(rooms, await shop.at())
  assert.deepEqual([tables.length, publishedAt], [4, null])
})

test('the job stores nothing about a column that is hidden while the job runs', async () => {
  await using server = await startPostgres()
  await using rooms = await openRooms()
  const shop = await Profiled.connect(rooms, await orderOf(server), null)
  const ids = Array.from({ length: 20 }, (_, n) => ({ schema: 'public', table: `t${n}`, columns: ['id'] }))
  let runs = 0
  const deps = withGeneration(rooms, async () => {
    if (++runs === 3) await shop.expose(ids)
  })
  const { jobId } = await generateDocumentation(deps, shop.call(), await shop.at())
  const job = await shop.ended(jobId)
  assert.deepEqual([job.state, job.done], ['DONE', 20], job.error)
  const { tables } = await getDocumentation(rooms, await shop.at())
  assert.ok(tables.length > 15)
  assert.doesNotMatch(JSON.stringify(tables), /note/)
})
