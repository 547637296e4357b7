// A query runs only if its dry run reports one SELECT that reads only the printed tables.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Disagreement } from '../../src/drivers/bigquery/session/dry-run.ts'
import { connectBigQuery, WIDE, type ConnectedBigQuery } from '../support/bigquery-connected.ts'
import { PROJECT } from '../support/bigquery-shop.ts'
import { failed, ok } from '../support/bigquery.ts'

const SMALL = 'SELECT id, name FROM shop.products ORDER BY id LIMIT 2'
const PRODUCTS = { projectId: PROJECT, datasetId: 'shop', tableId: 'products' }
const QUERY = {
  statementType: 'SELECT',
  totalBytesProcessed: '10',
  totalBytesProcessedAccuracy: 'PRECISE',
  referencedTables: [PRODUCTS],
}
const JOB = { configuration: { jobType: 'QUERY', query: {} }, jobReference: {}, status: { state: 'DONE' } }

const job = (query: object, statistics: object = {}, more: object = {}) =>
  ok({ ...JOB, ...more, statistics: { ...statistics, query: { ...QUERY, ...query } } })

const table = (tableId: string, more: object = {}) => ({ ...PRODUCTS, tableId, ...more })

describe('the check of the dry run', () => {
  let at: ConnectedBigQuery
  const alarms: Disagreement[] = []
  before(async () => {
    at = await connectBigQuery({ columns: ['id', 'name', 'price'], driver: { alarm: (each) => alarms.push(each) } })
  })
  after(async () => {
    assert.deepEqual(at.double.violations, [])
    await at[Symbol.asyncDispose]()
  })

  const refused: readonly (readonly [string, ReturnType<typeof job>])[] = [
    ['a script', job({ statementType: 'SCRIPT' })],
    ['a statement that writes', job({ statementType: 'INSERT' })],
    ['a statement without a type', job({ statementType: undefined })],
    ['a table that was not printed', job({ referencedTables: [PRODUCTS, table('secrets')] })],
    ['a table of another dataset', job({ referencedTables: [table('products', { datasetId: 'hr' })] })],
    ['a table of another project', job({ referencedTables: [table('products', { projectId: 'other-project' })] })],
    ['a name that only looks similar', job({ referencedTables: [table('Products')] })],
    ['a routine', job({ referencedRoutines: [{ projectId: PROJECT, datasetId: 'shop', routineId: 'peek' }] })],
    ['a parameter', job({ undeclaredQueryParameters: [{ name: 'p' }] })],
    ['a definition', job({ ddlOperationPerformed: 'CREATE' })],
    ['the target of a definition', job({ ddlTargetTable: PRODUCTS })],
    ['the target of a grant', job({ dclTargetTable: PRODUCTS })],
    ['changed rows', job({ dmlStats: { insertedRowCount: '1' } })],
    ['a count of changed rows', job({ numDmlAffectedRows: '0' })],
    ['an export', job({ exportDataStatistics: {} })],
    ['a model', job({ mlStatistics: {} })],
    ['a Spark procedure', job({ sparkStatistics: {} })],
    ['an external service', job({ externalServiceCosts: [{ externalService: 'x' }] })],
    ['a property graph', job({ referencedPropertyGraphs: [{}] })],
    ['a script’s statistics', job({}, { scriptStatistics: {} })],
    ['a session', job({}, { sessionInfo: { sessionId: 'x' } })],
    [
      'a destination',
      job({}, {}, { configuration: { jobType: 'QUERY', query: { destinationTable: table('products') } } }),
    ],
    ['another kind of job', job({}, {}, { configuration: { jobType: 'LOAD' } })],
    ['a job without a type', job({}, {}, { configuration: {} })],
    ['no bytes', job({ totalBytesProcessed: undefined })],
  ]
  for (const [what, reply] of refused) {
    test(`if a dry run reports ${what}, nothing runs, and the alarm is raised`, async () => {
      alarms.length = 0
      at.double.requests.length = 0
      at.double.rig('dry run', reply)
      const refusal = await at.refusal(SMALL)
      assert.equal(refusal.code, 'QUERY_DENIED')
      assert.deepEqual(refusal.extra['blocked'], { kind: 'statement', name: 'dry run' })
      assert.doesNotMatch(JSON.stringify([refusal.message, refusal.extra]), /secrets|peek|hr\b/)
      assert.equal(at.double.count('run'), 0)
      assert.match(alarms[0]?.textSha256 ?? '', /^[0-9a-f]{64}$/)
      assert.equal(alarms.length, 1)
    })
  }

  const unreadable: readonly (readonly [string, ReturnType<typeof ok>])[] = [
    ['no statistics', ok(JOB)],
    ['bytes that are not a number', job({ totalBytesProcessed: '-1' })],
    ['too many bytes to count', job({ totalBytesProcessed: '9'.repeat(40) })],
    ['invalid tables', job({ referencedTables: [{ projectId: PROJECT }] })],
    ['an invalid list of tables', job({ referencedTables: { ...PRODUCTS } })],
  ]
  for (const [what, reply] of unreadable) {
    test(`if a dry run returns ${what}, nothing runs`, async () => {
      at.double.requests.length = 0
      at.double.rig('dry run', reply)
      assert.equal((await at.refusal(SMALL)).code, 'DATASOURCE_UNAVAILABLE')
      assert.equal(at.double.count('run'), 0)
    })
  }

  test('facts that BigQuery reports in every dry run are accepted', async () => {
    const anonymous = { destinationTable: { projectId: PROJECT, datasetId: '_abc', tableId: 'anon123' } }
    const fine = [
      job({ referencedRoutines: [], undeclaredQueryParameters: [], referencedTables: [] }),
      job(
        { totalBytesProcessedAccuracy: 'UPPER_BOUND' },
        { totalBytesProcessed: '10' },
        { configuration: { jobType: 'QUERY', query: anonymous } },
      ),
    ]
    for (const reply of fine) {
      at.double.rig('dry run', reply)
      // Only estimate: the double would refuse to run SQL that had no such dry run.
      await at.connection.estimate(await at.confined(SMALL), WIDE, AbortSignal.timeout(60_000))
    }
  })

  test('if a dry run reports two numbers of bytes, the larger one is compared with the limit', async () => {
    at.double.rig('dry run', job({ totalBytesProcessed: '10' }, { totalBytesProcessed: '99999' }))
    const refusal = await at.refusal(SMALL, { ...WIDE, maxCost: 5000 })
    assert.deepEqual([refusal.code, refusal.extra['estimate'], refusal.extra['limit']], ['QUERY_DENIED', 99_999, 5000])
  })
})

test('an emulator may omit fields, but fields that an emulator sends are checked', async () => {
  await using at = await connectBigQuery({ columns: ['id', 'name', 'price'], emulator: true })
  const query = await at.confined(SMALL)
  const estimate = () => at.connection.estimate(query, WIDE, AbortSignal.timeout(60_000))
  at.double.rig('dry run', ok({ configuration: {}, statistics: { query: { statementType: 'SELECT' } } }))
  assert.equal((await estimate()).cost, 0)
  at.double.rig('dry run', job({ statementType: 'INSERT' }))
  await assert.rejects(estimate(), { code: 'QUERY_DENIED' })
  at.double.rig('dry run', job({ referencedTables: [table('secrets')] }))
  await assert.rejects(estimate(), { code: 'QUERY_DENIED' })
  at.double.rig('dry run', failed({ status: 400, reason: 'jobInternalError', message: 'no such function' }))
  await assert.rejects(estimate(), { code: 'QUERY_FAILED', message: 'no such function' })
  assert.deepEqual(at.double.violations, [])
})
