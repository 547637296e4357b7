// Two services on one PostgreSQL store: what one of them answered to a change holds in the other within a second. The
// last request that was still answered by what held before must have begun in that second; how long it took is no matter.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startApp, type Answer, type Person, type TestApp } from './support/app.ts'
import { startPostgres, type TestPostgres } from './support/postgres.ts'

const WITHIN_MS = 1_000

describe('a change made at one replica', () => {
  let server: TestPostgres
  let one: TestApp
  let other: TestApp
  let owner: Person
  let bo: Person
  let teamId: string
  let id: string

  before(async () => {
    server = await startPostgres()
    const DATABASE_URL = server.url(await server.createDatabase('replicas'))
    const env = { DATABASE_URL, VITRINE_SECRET_KEY: Buffer.alloc(32, 5).toString('base64') }
    one = await startApp({ env })
    other = await startApp({ env })
    owner = await one.person('Owner')
    bo = await one.person('Bo')
    teamId = await one.team(owner)
    await one.join(owner, teamId, bo)
    const made = await owner.must('POST', `/teams/${teamId}/datasources`, {
      name: 'shop',
      type: 'POSTGRES',
      connectionMode: 'DIRECT',
      host: '127.0.0.1',
      port: 1,
      database: 'shop',
      username: 'reader',
      password: 'pw',
      sslMode: 'disable',
      accessMode: 'EXPLICIT',
    })
    id = made.id
  })
  after(async () => {
    await one[Symbol.asyncDispose]()
    await other[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  /** Asks the other replica until it is told what holds now. */
  async function holds(ask: () => Promise<Answer>, isNow: (answer: Answer) => boolean): Promise<void> {
    const changed = performance.now()
    for (;;) {
      const began = performance.now()
      const answer = await ask()
      if (isNow(answer)) return
      assert.ok(began - changed < WITHIN_MS, `${began - changed} ms later: ${answer.status} ${answer.text}`)
    }
  }
  const status = (wanted: number) => (answer: Answer) => answer.status === wanted
  const schema = (token: string) => () => other.ask('GET', `/teams/${teamId}/datasources/${id}/schema`, { token })
  const list = (accountIds: string[]) => owner.must('PUT', `/teams/${teamId}/datasources/${id}/access`, { accountIds })

  test('gives and takes access, by token and by key', async () => {
    const key = await one.key(bo)
    for (const token of [bo.jwt, key]) {
      assert.equal((await schema(token)()).status, 404)
      await list([bo.id])
      await holds(schema(token), status(200))
      await list([])
      await holds(schema(token), status(404))
    }
    await owner.must('PATCH', `/teams/${teamId}/datasources/${id}`, { accessMode: 'ROLE_BASED', minRole: 'MEMBER' })
    await holds(schema(bo.jwt), status(200))
    await owner.must('PATCH', `/teams/${teamId}/datasources/${id}`, { minRole: 'ADMIN' })
    await holds(schema(bo.jwt), status(404))
  })

  test('raises and lowers a role', async () => {
    const managed = () => other.ask('GET', `/teams/${teamId}/datasources/${id}`, { token: bo.jwt })
    assert.equal((await managed()).status, 404)
    await owner.must('PATCH', `/teams/${teamId}/members/${bo.id}`, { role: 'ADMIN' })
    await holds(managed, status(200))
    await owner.must('PATCH', `/teams/${teamId}/members/${bo.id}`, { role: 'MEMBER' })
    await holds(managed, status(404))
  })

  test('ends a key, a session, a membership', async () => {
    const key = await one.key(bo)
    const me = (token: string) => () => other.ask('GET', '/users/me', { token })
    assert.equal((await me(key)()).status, 200)
    const keys = await bo.must('GET', '/users/me/keys')
    await bo.must('DELETE', `/users/me/keys/${keys.at(-1).id}`)
    await holds(me(key), status(401))

    const again = await one.signIn(bo.email)
    assert.equal((await me(again.jwt)()).status, 200)
    await one.must('POST', '/auth/sign-out', { body: {}, headers: { cookie: again.cookie, origin: one.url } })
    await holds(me(again.jwt), status(401))

    const team = () => other.ask('GET', `/teams/${teamId}`, { token: bo.jwt })
    assert.equal((await team()).status, 200)
    await owner.must('DELETE', `/teams/${teamId}/members/${bo.id}`)
    await holds(team, status(404))
  })
})
