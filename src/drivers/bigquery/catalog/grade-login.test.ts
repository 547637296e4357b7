// Tests the report of Connection.test() for credentials with too few rights, enough rights, and too many rights.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { connectBigQuery, type ConnectedBigQuery } from '../../../../test/support/bigquery-connected.ts'
import { select, type Known } from '../../../../test/support/bigquery-shop.ts'
import { failed } from '../../../../test/support/bigquery.ts'
import type { TestStep } from '../../driver.ts'

const DENIED = { error: { status: 403, reason: 'accessDenied', message: 'Access Denied: CANARY' } }

async function grade(at: ConnectedBigQuery) {
  const report = await at.connection.test(at.exposed, AbortSignal.timeout(60_000))
  const step = (name: string): TestStep =>
    report.steps.find((each) => each.name === name) ?? assert.fail(`no step ${name}`)
  assert.doesNotMatch(JSON.stringify(report), /CANARY|PRIVATE KEY|ya29/)
  assert.equal(report.ok, report.grade !== 'FAIL')
  return { report, step }
}

const granted: Known = { says: /CREATE TABLE/, analysis: { statistics: { statementType: 'CREATE_TABLE' } } }

describe('a grade of BigQuery credentials', () => {
  test('credentials that may read the exposed tables and write nothing pass, and the test runs and creates nothing', async () => {
    await using at = await connectBigQuery()
    const { report, step } = await grade(at)
    assert.equal(report.grade, 'PASS')
    assert.match(step('connection').message, /as reader@vitrine-test\.iam/)
    assert.match(step('datasets').message, /1 datasets in EU: shop/)
    assert.match(step('writes').message, /may not create tables/)
    assert.equal(at.double.count('run'), 0)
    assert.deepEqual(at.double.violations, [])
  })

  test('if more than ten tables are exposed, the report says how many were tested', async () => {
    await using at = await connectBigQuery()
    const tables = Array.from({ length: 11 }, () => at.exposed.tables)
      .flat()
      .slice(0, 11)
    const report = await at.connection.test({ ...at.exposed, tables }, AbortSignal.timeout(60_000))
    const step = report.steps.find(({ name }) => name === 'tables')
    assert.match(step?.message ?? '', /tested for the first 10 of 11 tables/)
  })

  test('credentials that may create tables get a warning, with the commands for better credentials', async () => {
    await using at = await connectBigQuery({ known: [granted] })
    const { report, step } = await grade(at)
    assert.deepEqual([report.grade, step('writes').status], ['WARN', 'WARN'])
    const remedy = step('writes').remedy ?? ''
    assert.match(remedy, /gcloud iam service-accounts create vitrine-reader --project=vitrine-test/)
    assert.match(remedy, /add-iam-policy-binding vitrine-test .*roles\/bigquery.jobUser/)
    assert.match(remedy, /GRANT `roles\/bigquery.dataViewer` ON TABLE `vitrine-test`.`shop`.`products`/)
    assert.equal(remedy.match(/\.dataViewer/g)?.length, 2)
  })

  test('credentials get a warning if it is unknown whether they may write', async () => {
    const analysis = { error: { status: 400, reason: 'invalidQuery', message: 'CANARY' } }
    await using at = await connectBigQuery({ known: [{ says: /CREATE TABLE/, analysis }] })
    assert.match((await grade(at)).step('writes').message, /unknown whether/)
  })

  test('credentials that may not read the exposed tables get a warning', async () => {
    await using at = await connectBigQuery({ known: [{ says: /COUNT.*secrets/, analysis: DENIED }] })
    const { step } = await grade(at)
    assert.deepEqual(
      [step('tables').status, step('tables').message],
      ['WARN', 'The credentials may not read shop.secrets, which is exposed.'],
    )
  })

  test('credentials get a warning if it is unknown whether they may read the exposed tables', async () => {
    const analysis = { error: { status: 400, reason: 'invalidQuery', message: 'CANARY' } }
    await using at = await connectBigQuery({ known: [{ says: /COUNT.*secrets/, analysis }] })
    const { step } = await grade(at)
    assert.deepEqual(
      [step('tables').status, step('tables').message],
      ['WARN', 'It is unknown whether the credentials may read shop.secrets, which is exposed.'],
    )
  })

  test('credentials that may not run queries fail, and the report names the missing permission', async () => {
    const analysis = {
      error: {
        ...DENIED.error,
        message: 'Access Denied: User does not have bigquery.jobs.create permission in project CANARY.',
      },
    }
    await using at = await connectBigQuery({ known: [{ says: /^SELECT 1$/, analysis }] })
    const { report, step } = await grade(at)
    assert.deepEqual([report.ok, report.error], [false, step('queries').message])
    assert.match(report.error ?? '', /bigquery\.jobs\.create/)
  })

  test('credentials that see no dataset, or none in the chosen location, get a warning', async () => {
    await using at = await connectBigQuery({ config: { location: 'EU' }, double: { datasets: {} } })
    assert.equal((await grade(at)).step('datasets').status, 'WARN')
    await using other = await connectBigQuery({
      config: { location: 'US' },
      known: [{ says: /./, analysis: select() }],
      double: { location: 'US', datasets: { eu: { location: 'EU', tables: {} } } },
    })
    assert.match((await grade(other)).step('datasets').message, /no dataset of vitrine-test in US/)
  })

  test('if the project has not enabled the API, credentials cannot be tested, and the error says so', async () => {
    await using at = await connectBigQuery()
    at.double.rig('datasets', failed({ status: 403, reason: 'accessNotConfigured', message: 'CANARY' }), 9)
    await assert.rejects(at.connection.test(null, AbortSignal.timeout(60_000)), {
      code: 'DATASOURCE_UNAVAILABLE',
      message: /API is not enabled/,
    })
  })

  test('credentials that see further datasets get a note without a warning', async () => {
    const shop = {
      shop: { tables: {} },
      hr: { tables: { salaries: { schema: { fields: [{ name: 'x', type: 'INTEGER' }] } } } },
    }
    await using at = await connectBigQuery({ double: { datasets: shop }, config: { datasets: ['shop'] } })
    const step = (await grade(at)).step('other datasets')
    assert.equal(step.status, 'PASS')
    assert.match(step.message, /also see hr/)
  })

  test('an emulator gets a warning, and no test for writing', async () => {
    await using at = await connectBigQuery({ emulator: true, known: [granted] })
    const { report, step } = await grade(at)
    assert.deepEqual([step('connection').status, step('writes').status], ['WARN', 'PASS'])
    assert.match(report.serverVersion ?? '', /emulator/)
    assert.ok(at.double.requests.every(({ body }) => !JSON.stringify(body ?? '').includes('CREATE')))
  })

  test('if a dataset has a family of shards, the commands for better credentials grant a role on the whole dataset', async () => {
    const table = { schema: { fields: [{ name: 'x', type: 'INTEGER' }] } }
    await using at = await connectBigQuery({
      known: [granted],
      double: { datasets: { web: { tables: { events_20240101: table, v: { ...table, type: 'VIEW' } } } } },
    })
    const remedy = (await grade(at)).step('writes').remedy ?? ''
    assert.match(remedy, /dataViewer` ON SCHEMA `vitrine-test`.`web`/)
    assert.doesNotMatch(remedy, /events_|ON TABLE/)
  })
})
