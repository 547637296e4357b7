// Two processes share one PostgreSQL store. A change through one process is effective in the other. If a process is
// killed during a job, the other process waits for the end of the job's lease. Then it finishes the job, or the job
// fails with a message.
import assert from 'node:assert/strict'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Client } from 'pg'
import { INTERRUPTED } from '../../src/jobs/job-types.ts'
import { Agent } from '../support/agent.ts'
import type { Answer, Person } from '../support/app.ts'
import { connected, overHttp, PROXY, refresh, registered } from '../support/oauth.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { startService, type Service } from '../support/service.ts'
import { until } from '../support/until.ts'

const SHOP = `CREATE TABLE orders (id int PRIMARY KEY, state text);
INSERT INTO orders VALUES (1, 'open'), (2, 'paid'); ANALYZE`
const WHOLE = [{ schema: 'public', table: 'orders', columns: null }]
/** The test makes the jobs look older by this time, which is longer than the lease of a job. */
const SILENT_MS = 61_000

describe('two processes on one store', () => {
  const stack = new AsyncDisposableStack()
  let server: TestPostgres
  let store: string
  let shop: string
  let one: Service
  let other: Service
  let owner: Person
  let bo: Person
  let teamId: string
  let at: string

  before(async () => {
    server = stack.use(await startPostgres())
    store = await server.createDatabase('replicas')
    shop = await server.createDatabase('shop', SHOP)
    one = stack.use(await start())
    // Both processes have the same public URL for agents.
    other = stack.use(await start({ VITRINE_PUBLIC_URL: one.url }))
    owner = await one.person('Owner')
    bo = await one.person('Bo')
    teamId = await one.team(owner)
    const login = { host: server.host, port: server.port, username: server.superuser, password: server.password }
    at = `/teams/${teamId}/datasources/${await one.datasource(owner, teamId, { ...login, database: shop }, WHOLE)}`
    await one.join(owner, teamId, bo)
  })
  after(() => stack.disposeAsync())

  async function start(env: Record<string, string> = {}): Promise<Service> {
    const shared = {
      DATABASE_URL: server.url(store),
      VITRINE_SECRET_KEY: Buffer.alloc(32, 6).toString('base64'),
    }
    return await startService(await mkdtemp(join(tmpdir(), 'vitrine-replica-')), { ...PROXY, ...shared, ...env })
  }

  const query = (token = bo.jwt) =>
    other.ask('POST', `${at}/query`, { token, body: { sql: 'SELECT id FROM orders ORDER BY id' } })
  const statusBecomes = (status: number, ask: () => Promise<Pick<Answer, 'status'>>) =>
    until(`${status} at the other process`, async () => (await ask()).status === status)

  test('a table that is hidden through one process is refused by the other, until it is exposed again', async () => {
    assert.equal((await query()).status, 200)
    await owner.must('PUT', `${at}/exposure`, { tables: [] })
    await statusBecomes(403, query)
    await owner.must('PUT', `${at}/exposure`, { tables: WHOLE })
    await statusBecomes(200, query)
  })

  test('a change of the settings of the team is effective in the other process', async () => {
    const rows = async () => (await query()).json.rows
    assert.deepEqual(await rows(), [[1], [2]])
    await owner.must('PATCH', `/teams/${teamId}`, { settings: { rowCap: 1 } })
    await until('one row', async () => (await rows()).length === 1)
    await owner.must('PATCH', `/teams/${teamId}`, { settings: { rowCap: 1_000 } })
    await until('both rows', async () => (await rows()).length === 2)
  })

  test('a change of the access list is effective in the other process', async () => {
    await owner.must('PATCH', at, { accessMode: 'EXPLICIT' })
    await statusBecomes(404, query)
    await owner.must('PUT', `${at}/access`, { accountIds: [bo.id] })
    await statusBecomes(200, query)
    await owner.must('PUT', `${at}/access`, { accountIds: [] })
    await statusBecomes(404, query)
    await owner.must('PATCH', at, { accessMode: 'ROLE_BASED', minRole: 'MEMBER' })
    await statusBecomes(200, query)
  })

  test('narrowing and ending the grant of an agent are effective in the other process', async () => {
    const service = overHttp(one)
    const client = await registered(service)
    const second = await one.team(bo, 'Second')
    const tokens = await connected(service, bo, client, { teamIds: [teamId, second] })
    const agent = new Agent(other, tokens.access)
    const teams = async () => (await agent.tool('list_teams')).teams.length
    assert.equal(await teams(), 2)
    const [{ id }] = await bo.must('GET', '/users/me/grants')
    await bo.must('PATCH', `/users/me/grants/${id}`, { teamIds: [second], scopes: ['profile', 'data:schema'] })
    await until('one team', async () => (await teams()) === 1)
    await bo.must('DELETE', `/users/me/grants/${id}`)
    await statusBecomes(401, () => agent.call('modern', 'list_teams'))
    assert.equal((await refresh(overHttp(other), client.clientId, tokens.refresh)).status, 400)
  })

  test('the end of a key, a role or a membership is effective in the other process', async () => {
    const key = await one.key(bo)
    assert.equal((await query(key)).status, 200)
    const manage = () => other.ask('GET', at, { token: bo.jwt })
    assert.equal((await manage()).status, 403)
    await owner.must('PATCH', `/teams/${teamId}/members/${bo.id}`, { role: 'ADMIN' })
    await statusBecomes(200, manage)
    await owner.must('PATCH', `/teams/${teamId}/members/${bo.id}`, { role: 'MEMBER' })
    await statusBecomes(403, manage)
    const keys = await bo.must('GET', '/users/me/keys')
    await bo.must('DELETE', `/users/me/keys/${keys.at(-1).id}`)
    await statusBecomes(401, () => query(key))
    await owner.must('DELETE', `/teams/${teamId}/members/${bo.id}`)
    await statusBecomes(404, query)
  })

  test('if a process is killed during jobs, the other process finishes the profile after the lease, and the introspection fails with a message', async () => {
    await using locker = await lock('orders')
    const doomed = await start()
    await using _killed = doomed
    const ask = (method: string, path: string, app: Service = other) =>
      app.ask(method, `${at}/${path}`, { token: owner.jwt })
    const profile = (await ask('POST', 'profile', doomed)).json.jobId
    // This request is answered when the job ends.
    const introspected = ask('POST', 'introspect', doomed).catch(() => undefined)
    const running = () => server.query(store, `SELECT kind FROM jobs WHERE state = 'RUNNING' ORDER BY kind`)
    const both = JSON.stringify([['introspect'], ['profile']])
    await until('both jobs run', async () => JSON.stringify(await running()) === both)
    doomed.signal('SIGKILL')
    await Promise.all([doomed.ended, introspected])

    const joined = await ask('POST', 'introspect')
    assert.equal(joined.status, 202, joined.text)
    const job = async (id: string) => (await ask('GET', `jobs/${id}`)).json
    const states = async () => [(await job(profile)).state, (await job(joined.json.jobId)).state]
    assert.deepEqual(await states(), ['RUNNING', 'RUNNING'], 'a process may be silent for a while')

    const heard = new Date(Date.now() - SILENT_MS).toISOString()
    await server.query(store, `UPDATE jobs SET updated_at = '${heard}' WHERE state = 'RUNNING'`)
    const { state, error } = await job(joined.json.jobId)
    assert.deepEqual([state, error], ['FAILED', INTERRUPTED])
    await locker.release()
    assert.equal((await ask('POST', 'introspect')).status, 200)
    await until('the profile is taken over', async () => (await job(profile)).state !== 'RUNNING')
    const { state: end, result } = await job(profile)
    assert.deepEqual([end, result], ['DONE', { tables: 1, columns: 2, skipped: [] }])
  })

  /** Locks the table, and a system table that introspection reads. */
  async function lock(table: string) {
    const client = new Client({ connectionString: server.url(shop) })
    await client.connect()
    await client.query(`BEGIN; LOCK TABLE ${table}, pg_catalog.pg_description IN ACCESS EXCLUSIVE MODE`)
    return { release: () => client.query('ROLLBACK'), [Symbol.asyncDispose]: () => client.end() }
  }
})
