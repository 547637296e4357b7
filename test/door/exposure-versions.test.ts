// Tests the history of an exposure over HTTP, conflicts between two authors, and the machine-readable problems of a
// request.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startApp, type Person, type TestApp } from '../support/app.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'

const SQL = 'CREATE TABLE a (x int, y int, z int); CREATE TABLE b (x int)'

describe('the versions of an exposure', () => {
  let app: TestApp
  let postgres: TestPostgres
  let owner: Person
  let at: string

  before(async () => {
    postgres = await startPostgres()
    const database = await postgres.createDatabase('shop', SQL)
    app = await startApp()
    owner = await app.person('Olga')
    const teamId = await app.team(owner)
    const login = {
      host: postgres.host,
      port: postgres.port,
      username: postgres.superuser,
      password: postgres.password,
    }
    at = `/teams/${teamId}/datasources/${await app.datasource(owner, teamId, { ...login, database })}`
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
    await postgres[Symbol.asyncDispose]()
  })

  const shown = (table: string, columns: readonly string[]) => ({ schema: 'public', table, columns })
  const put = (body: object) => owner.ask('PUT', `${at}/exposure`, body)
  const author = () => ({ accountId: owner.id, name: 'Olga' })

  test('a version of the exposure has an author, a time, a note and counts, in the list and on its own', async () => {
    const none = await owner.must('GET', `${at}/exposure`)
    assert.deepEqual([none.version, none.author, none.savedAt, none.note], [0, null, null, null])
    const first = (await put({ tables: [shown('a', ['x', 'y'])], note: 'for the monthly report', version: 0 })).json
    assert.deepEqual([first.version, first.author, first.note], [1, author(), 'for the monthly report'])
    const second = (await put({ tables: [shown('a', ['y', 'z']), shown('b', ['x'])] })).json
    assert.deepEqual([second.version, second.note], [2, null])
    const { warnings: _, ...read } = second
    assert.deepEqual(await owner.must('GET', `${at}/exposure`), read)

    const brief = await owner.must('GET', `${at}/exposure/versions?brief=1`)
    assert.deepEqual(brief, {
      items: [
        {
          version: 2,
          author: author(),
          savedAt: second.savedAt,
          note: null,
          tables: 2,
          columns: 3,
          added: 2,
          removed: 1,
        },
        {
          version: 1,
          author: author(),
          savedAt: first.savedAt,
          note: 'for the monthly report',
          ...{ tables: 1, columns: 2, added: 2, removed: 0 },
        },
      ],
      nextCursor: null,
    })
    const page = await owner.must('GET', `${at}/exposure/versions?brief=1&limit=1`)
    assert.deepEqual([page.items.length, page.nextCursor], [1, '2'])
    const next = await owner.must('GET', `${at}/exposure/versions?brief=1&limit=1&cursor=2`)
    assert.deepEqual([next.items[0].version, next.nextCursor], [1, null])

    const { items } = await owner.must('GET', `${at}/exposure/versions`)
    const one = await owner.must('GET', `${at}/exposure/versions/1`)
    assert.deepEqual(one, items[1])
    assert.deepEqual(one.tables, [shown('a', ['x', 'y'])])
    for (const number of ['3', '0', '01', 'x', '99999999999']) {
      assert.equal((await owner.ask('GET', `${at}/exposure/versions/${number}`)).json.code, 'NOT_FOUND', number)
    }
    assert.equal((await owner.ask('GET', `${at}/exposure/versions?brief=0`)).status, 400)
    assert.equal((await put({ tables: [], note: 'x'.repeat(201) })).status, 400)
    const { items: audited } = await owner.must('GET', `/teams/${at.split('/')[2]}/audit?action=putExposure`)
    const notes = audited.map((item: { changes?: { note?: unknown } }) => item.changes?.note)
    assert.deepEqual(
      notes.filter((note: unknown) => note !== undefined),
      [{ from: null, to: 'for the monthly report' }],
    )
  })

  test('a conflict between two saves of an exposure says who saved which version, and when', async () => {
    const { version, savedAt } = await owner.must('GET', `${at}/exposure`)
    const { status, json } = await put({ tables: [], version: version - 1 })
    assert.deepEqual([status, json.code], [409, 'CONFLICT'])
    assert.deepEqual([json.version, json.author, json.savedAt], [version, author(), savedAt])
  })

  test('an invalid exposure request lists machine-readable issues beside the details', async () => {
    const { json } = await put({ tables: [shown('a', ['x', 'zz']), shown('c', ['x'])] })
    assert.deepEqual(json.issues, [
      { path: ['tables', 0], message: 'public.a: there is no column zz' },
      { path: ['tables', 1], message: 'public.c: there is no such table' },
    ])
    assert.equal(json.details.length, 2)
    const issuesOf = async (body: unknown) => (await owner.ask('PUT', `${at}/exposure`, body)).json.issues
    assert.deepEqual(await issuesOf({ tables: [{ ...shown('a', []), nope: 1 }] }), [
      { path: ['tables', 0, 'nope'], message: 'unknown field' },
    ])
    const [wrong] = await issuesOf({ tables: [shown('a', ['x']), { ...shown('a', ['x']), table: 7 }] })
    assert.deepEqual(wrong.path, ['tables', 1, 'table'])
    assert.deepEqual((await issuesOf('{"tables"'))[0], { path: [], message: 'not valid JSON' })
    assert.deepEqual((await issuesOf(null))[0].path, [])
    const query = await owner.ask('GET', `${at}/jobs?nope=1`)
    assert.deepEqual(query.json.issues, [{ path: ['nope'], message: 'unknown query parameter' }])
    const signUp = await app.ask('POST', '/auth/sign-up/email', { body: {}, headers: { origin: app.url } })
    assert.ok(signUp.json.issues.length > 0, signUp.text)
  })

  test('a query check with a draft exposure gets the same verdict as any check, and the audit only counts it', async () => {
    const sql = `SELECT x FROM b WHERE x = ${Math.trunc(Date.now() / 7)}`
    const draft = await owner.must('POST', `${at}/check`, { sql, draft: true })
    assert.equal(draft.verdict, 'ALLOWED')
    const whole = await owner.must('POST', `${at}/check`, { sql, draft: false })
    assert.deepEqual(draft, whole)
    const denied = await owner.must('POST', `${at}/check`, { sql: 'SELECT nope FROM b', draft: true })
    assert.deepEqual([denied.verdict, denied.blocked.name], ['DENIED', 'nope'])
    const { items } = await owner.must('GET', `/teams/${at.split('/')[2]}/audit?action=checkQuery`)
    const own = items.filter((item: { query?: string }) => item.query !== undefined)
    assert.deepEqual(
      own.map((item: { query: string }) => item.query),
      [sql],
    )
    const counted = items.filter((item: { query?: string }) => item.query === undefined)
    const times = counted.map((item: { times?: number }) => item.times ?? 1)
    assert.equal(
      times.reduce((sum: number, each: number) => sum + each, 0),
      2,
      'a row for each minute',
    )
    assert.equal((await owner.ask('POST', `${at}/check`, { sql, draft: 'yes' })).json.issues[0].path[0], 'draft')
  })

  test('too many draft checks by one session are refused, but other checks are not', async () => {
    const check = () => owner.ask('POST', `${at}/check`, { sql: 'SELECT x FROM b', draft: true })
    const codes = new Set<string>()
    // On a slow machine, fewer than eleven checks may start within one second. So repeat until a check is refused.
    while (!codes.has('RATE_LIMITED')) {
      const answers = await Promise.all(Array.from({ length: 40 }, check))
      for (const { json } of answers) codes.add(json.code ?? 'ANSWERED')
      const limited = answers.find(({ status }) => status === 429)
      if (limited !== undefined) assert.equal(limited.headers.get('retry-after'), '1')
    }
    assert.deepEqual([...codes].sort(), ['ANSWERED', 'RATE_LIMITED'])
    assert.equal((await owner.ask('POST', `${at}/check`, { sql: 'SELECT x FROM b' })).status, 200)
  })
})
