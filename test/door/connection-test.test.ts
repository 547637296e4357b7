// Tests the connection test over HTTP. For a saved connection, its report is stored, and its grade is shown in the list
// of datasources. A connection may also be tried before it is saved.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startApp, type Answer, type Person, type TestApp } from '../support/app.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'

const MANAGED_FIELDS = ['schemaCapturedAt', 'tableCount', 'driftCount', 'exposureVersion']

interface Step {
  readonly id: string
  readonly name: string
  readonly status: string
  readonly field: string | null
  readonly remedy: string | null
  readonly remedyId: string | null
  readonly remedyKind: string | null
}

describe('testing a connection', () => {
  let app: TestApp
  let postgres: TestPostgres
  let owner: Person
  let teamId: string
  let at: string
  let database: string
  let direct: object

  before(async () => {
    postgres = await startPostgres()
    database = await postgres.createDatabase('shop', 'CREATE TABLE a (id int); CREATE TABLE b (id int)')
    app = await startApp()
    owner = await app.person('Olga')
    teamId = await app.team(owner)
    const login = { username: postgres.superuser, password: postgres.password, sslMode: 'disable' }
    direct = {
      type: 'POSTGRES',
      connectionMode: 'DIRECT',
      host: postgres.host,
      port: postgres.port,
      database,
      ...login,
    }
    const order = { name: 'shop', accessMode: 'ROLE_BASED', minRole: 'MEMBER', ...direct }
    at = `/teams/${teamId}/datasources/${(await owner.must('POST', `/teams/${teamId}/datasources`, order)).id}`
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
    await postgres[Symbol.asyncDispose]()
  })

  const list = async (token = owner.jwt) => (await app.must('GET', `/teams/${teamId}/datasources`, { token }))[0]
  const trial = (body: object) => owner.ask('POST', `/teams/${teamId}/datasources/test`, body)
  const step = (report: Answer['json'], id: string): Step | undefined =>
    report.steps.find((each: Step) => each.id === id)

  test('the last report of a connection test is kept, and its grade is shown in the list of datasources', async () => {
    assert.equal((await owner.ask('GET', `${at}/test`)).status, 404)
    assert.equal((await list()).lastGrade, null)
    const report = await owner.must('POST', `${at}/test`)
    assert.equal(report.grade, 'WARN', 'a superuser')
    assert.deepEqual(await owner.must('GET', `${at}/test`), report)
    const item = await list()
    assert.deepEqual([item.status, item.lastGrade, item.lastTestedAt], ['CONNECTED', 'WARN', report.testedAt])
  })

  test('the steps of a connection report have stable ids and fields, and each remedy is shown once', async () => {
    const report = await owner.must('GET', `${at}/test`)
    const ids = report.steps.map((each: Step) => each.id)
    assert.deepEqual(ids, [
      'connection',
      'server-version',
      'tls',
      'superuser',
      'writes',
      'ownership',
      'row-security',
      'roles',
      'creates',
      'public-creates',
      'casts-and-operator-classes',
      'temporary-files',
      'grants',
    ])
    const [superuser, writes] = [step(report, 'superuser'), step(report, 'writes')]
    assert.deepEqual([superuser?.field, superuser?.remedyKind, superuser?.remedyId], ['username', 'SQL', 'superuser'])
    assert.equal(writes?.remedyId, 'superuser', 'the same remedy')
    assert.deepEqual(step(report, 'connection')?.remedyId, null)
    for (const { remedy, remedyId, remedyKind } of report.steps as Step[]) {
      assert.equal(remedyId === null, remedy === null)
      assert.equal(remedyKind === null, remedy === null)
      if (remedyId !== null) assert.equal(report.remedies[remedyId], remedy)
    }
    const texts = Object.values(report.remedies)
    assert.equal(new Set(texts).size, texts.length)
  })

  test('the connection report and the grade are removed when the connection changes', async () => {
    await owner.must('PATCH', at, { ...direct, type: undefined, database: 'elsewhere' })
    assert.equal((await owner.ask('GET', `${at}/test`)).status, 404)
    assert.equal((await list()).lastGrade, null)
    const report = await owner.must('POST', `${at}/test`)
    const [failed] = report.steps
    assert.deepEqual([report.ok, report.grade, failed.id, failed.field], [false, 'FAIL', 'connect', 'database'])
    assert.equal((await list()).lastGrade, 'FAIL')
    await owner.must('PATCH', at, { ...direct, type: undefined })
  })

  test('only managers see what was introspected, and what has changed since the exposure was saved', async () => {
    const seen = async () => MANAGED_FIELDS.map((field) => item[field])
    let item = await list()
    assert.deepEqual(await seen(), [null, null, null, 0])
    const { schemaCapturedAt } = await owner.must('POST', `${at}/introspect`)
    item = await list()
    assert.deepEqual(await seen(), [schemaCapturedAt, 2, null, 0])
    await owner.must('PUT', `${at}/exposure`, { tables: [{ schema: 'public', table: 'a', columns: null }] })
    item = await list()
    assert.deepEqual(await seen(), [schemaCapturedAt, 2, 0, 1])
    await postgres.query(database, 'CREATE TABLE c (id int); ALTER TABLE b ADD COLUMN more text')
    await owner.must('POST', `${at}/introspect`)
    item = await owner.must('GET', at)
    assert.deepEqual((await seen()).slice(1), [3, 2, 1])

    const member = await app.person('Max')
    await app.join(owner, teamId, member)
    for (const token of [member.jwt, await app.key(owner)]) {
      const shown = await list(token)
      assert.equal(shown.exposedTableCount, 1)
      for (const field of [...MANAGED_FIELDS, 'lastGrade']) assert.equal(field in shown, false, field)
    }
  })

  test('a connection can be tried without saving anything', async () => {
    const before = await owner.must('GET', `/teams/${teamId}/datasources`)
    const good = await trial(direct)
    assert.equal(good.status, 200)
    assert.deepEqual([good.json.ok, good.json.parsed, good.json.contradictions], [true, null, []])
    const bad = await trial({ ...direct, username: 'nobody_at_all', name: 'not needed' })
    assert.deepEqual([bad.json.ok, bad.json.grade], [false, 'FAIL'])
    assert.ok(['username', 'password'].includes(bad.json.steps[0].field), bad.text)
    assert.deepEqual((await trial({ ...direct, host: '' })).json.code, 'INVALID_REQUEST')
    assert.deepEqual((await trial({ ...direct, id: 'x' })).json.code, 'INVALID_REQUEST')
    assert.deepEqual(await owner.must('GET', `/teams/${teamId}/datasources`), before)
  })

  test('the report shows the fields of a URI and which of the given fields differ, but no password', async () => {
    const { host, port, superuser, password } = postgres
    const uri = `postgres://${superuser}:${encodeURIComponent(`${password}x`)}@${host}:${port}/${database}?sslmode=disable`
    const given = { host, port: 1, username: superuser, password: 'something else', sslMode: 'require' }
    const { json, text } = await trial({ type: 'POSTGRES', connectionMode: 'URI', uri, ...given })
    assert.deepEqual(json.parsed, { host, port, database, username: superuser, sslMode: 'disable', config: {} })
    assert.deepEqual(json.contradictions, [
      { field: 'port', inUri: port, given: 1 },
      { field: 'sslMode', inUri: 'disable', given: 'require' },
      { field: 'password', inUri: null, given: null },
    ])
    assert.ok(!text.includes('something else') && !text.includes(`${password}x`), text)
  })

  test('the job list shows who started each job, but no results', async () => {
    const { jobId } = await owner.must('POST', `${at}/profile`, {})
    let job = await owner.must('GET', `${at}/jobs/${jobId}`)
    while (job.state === 'RUNNING') job = await owner.must('GET', `${at}/jobs/${jobId}`)
    assert.deepEqual([job.state, job.step, job.startedBy], ['DONE', null, { accountId: owner.id, name: 'Olga' }])
    const { result, ...shown } = job
    assert.ok(result.tables > 0)
    assert.deepEqual(await owner.must('GET', `${at}/jobs?kind=profile`), [shown])
    const kinds = (await owner.must('GET', `${at}/jobs?state=DONE`)).map((each: { kind: string }) => each.kind)
    assert.deepEqual(kinds, ['profile', 'introspect', 'introspect'], 'the newest first')
    assert.deepEqual(await owner.must('GET', `${at}/jobs?state=RUNNING`), [])
    assert.equal((await owner.ask('GET', `${at}/jobs?state=OVER`)).status, 400)
  })
})
