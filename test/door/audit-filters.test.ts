// Tests the filters of GET /teams/{teamId}/audit, as a console uses them.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startApp, type Person, type TestApp } from '../support/app.ts'

interface Item {
  readonly id: string
  readonly action: string
  readonly outcome: string
  readonly code?: string
  readonly via: string
  readonly actor: { readonly client?: string }
  readonly query?: string
}

describe('filters of the audit', () => {
  let app: TestApp
  let owner: Person
  let path: string
  let all: readonly Item[]

  const list = async (query: string): Promise<readonly Item[]> =>
    (await owner.must('GET', `${path}/audit?limit=200&${query}`)).items
  const actions = async (query: string) => [...new Set((await list(query)).map((item) => item.action))].sort()

  before(async () => {
    app = await startApp()
    owner = await app.person('Olga')
    const teamId = await app.team(owner)
    path = `/teams/${teamId}`
    const shop = { name: 'Größe', type: 'POSTGRES', connectionMode: 'DIRECT', host: '127.0.0.1', port: 1 }
    const order = { ...shop, database: 'shop', username: 'reader', password: 'pw', sslMode: 'disable' }
    const { id } = await owner.must('POST', `${path}/datasources`, order)
    const at = `${path}/datasources/${id}`
    await owner.must('GET', `${at}/exposure`)
    await owner.must('PATCH', at, { name: 'renamed' })
    await owner.must('POST', `${at}/disable`)
    for (const client of ['agent/1.0, beta', 'other/2']) {
      // Refusals of one key would share a row.
      const key = await app.key(owner)
      const headers = { 'user-agent': client }
      await app.ask('POST', `${at}/query`, { token: key, body: { sql: 'SELECT Total FROM orders' }, headers })
    }
    all = await list('')
  })
  after(() => app[Symbol.asyncDispose]())

  test('audit filters take several values, separated by commas or as a repeated parameter', async () => {
    assert.deepEqual(await actions('action=createTeam,changeTeam'), ['changeTeam', 'createTeam'])
    assert.deepEqual(await actions('action=createTeam&action=changeTeam'), ['changeTeam', 'createTeam'])
    const refused = all.filter((item) => item.outcome !== 'ANSWERED')
    assert.ok(refused.length >= 2)
    assert.deepEqual(await list('outcome=DENIED,FAILED'), refused)
    assert.deepEqual(await list('code=DATASOURCE_DISABLED,NOT_FOUND'), refused)
    assert.deepEqual(await list('via=API_KEY,CONNECTOR'), refused)
    const [one] = await list(`client=${encodeURIComponent('agent/1.0, beta')}`)
    assert.equal(one?.actor.client, 'agent/1.0, beta')
    assert.equal((await list(`client=${encodeURIComponent('agent/1.0, beta')}&client=other/2`)).length, 2)
    assert.deepEqual(await list('blocked=column,table:orders'), [])
  })

  test('an audit filter selects the kind of action', async () => {
    assert.deepEqual(await actions('kind=query'), ['runQuery'])
    assert.deepEqual(await actions('kind=read'), ['getExposure'])
    const changes = ['changeDatasource', 'changeTeam', 'createDatasource', 'createTeam', 'disableDatasource']
    assert.deepEqual(await actions('kind=change'), changes)
    assert.deepEqual(await actions('kind=signIn'), [])
    assert.deepEqual(await list('kind=query,change,read,signIn'), all)
  })

  test('an audit filter searches texts and names, and ignores case', async () => {
    assert.deepEqual(await actions('q=RENAMED'), ['changeDatasource', 'disableDatasource'])
    assert.deepEqual(await actions(`q=${encodeURIComponent('größe')}`), ['createDatasource'])
    assert.deepEqual(await actions('q=is%20disabled'), ['runQuery'])
    assert.deepEqual(await list('q=no%20such%20text'), [])
    assert.deepEqual(await list('q=%25'), [])
  })

  test('an audit filter selects several ids in any order, and refuses more than 100', async () => {
    const ids = [all[3]?.id, all[0]?.id, '00000000-0000-4000-8000-000000000000', all[3]?.id].join()
    assert.deepEqual((await owner.must('GET', `${path}/audit?id=${ids}`)).items, [all[0], all[3]])
    const many = Array.from({ length: 101 }, () => all[0]?.id).join()
    assert.equal((await owner.ask('GET', `${path}/audit?id=${many}`)).json.code, 'INVALID_REQUEST')
  })

  test('an audit filter selects the rows that are newer than a given row, for a live list', async () => {
    assert.deepEqual(await list(`after=${all[2]?.id}`), all.slice(0, 2))
    assert.deepEqual(await list(`after=${all[0]?.id}`), [])
    await owner.must('PATCH', path, { name: 'Live' })
    assert.deepEqual(await actions(`after=${all[0]?.id}`), ['changeTeam'])
    assert.equal((await owner.ask('GET', `${path}/audit?after=nothing`)).json.code, 'INVALID_REQUEST')
  })

  test('audit filters apply to an export too', async () => {
    const file = await owner.ask('GET', `${path}/audit/export?format=jsonl&q=renamed&kind=change`)
    assert.equal(file.text.trim().split('\n').length, 2)
  })

  test('an audit filter is refused if a value is empty, too long or wrong', async () => {
    for (const query of [
      'q=',
      `q=${'x'.repeat(101)}`,
      'kind=query,nope',
      'via=REST',
      'outcome=',
      'id=a%20b',
      'blocked=',
    ]) {
      const answer = await owner.ask('GET', `${path}/audit?${query}`)
      assert.equal(answer.json.code, 'INVALID_REQUEST', query)
    }
  })
})
