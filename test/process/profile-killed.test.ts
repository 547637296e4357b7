import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Client } from 'pg'
import { openStore } from '../../src/store/open.ts'
import { environment } from '../support/environment.ts'
import { startPostgres } from '../support/postgres.ts'
import { MAIN } from '../support/program.ts'

const SQL = `CREATE TABLE first (id int PRIMARY KEY, state text);
INSERT INTO first SELECT n, CASE n % 2 WHEN 0 THEN 'open' ELSE 'paid' END FROM generate_series(1, 100) n;
CREATE TABLE second (LIKE first INCLUDING ALL); INSERT INTO second SELECT * FROM first; ANALYZE;`
const PERSON = { email: 'ada@example.test', password: 'a long enough password' }

test('kill -9 during a profile leaves no partial row, and the next process finishes the job', async () => {
  await using stack = new AsyncDisposableStack()
  const postgres = stack.use(await startPostgres())
  const database = await postgres.createDatabase('killed', SQL)
  const dataDir = await mkdtemp(join(tmpdir(), 'vitrine-killed-'))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  const locker = new Client({ connectionString: postgres.url(database) })
  await locker.connect()
  stack.defer(() => locker.end())

  const first = await serve(dataDir, stack)
  const ask = await enter(first.address, 'sign-up')
  const team = await ask('POST', '/teams', { name: 'Team' })
  const { host, port, superuser: username, password } = postgres
  const spec = {
    name: 'shop',
    type: 'POSTGRES',
    connectionMode: 'DIRECT',
    sslMode: 'disable',
    accessMode: 'ROLE_BASED',
  }
  const login = { host, port, database, username, password, minRole: 'MEMBER', config: {} }
  const { id } = await ask('POST', `/teams/${text(team['id'])}/datasources`, { ...spec, ...login })
  const at = `/teams/${text(team['id'])}/datasources/${text(id)}`
  await ask('POST', `${at}/introspect`, {})
  const tables = ['first', 'second'].map((table) => ({ schema: 'public', table, columns: null }))
  await ask('PUT', `${at}/exposure`, { tables })
  await locker.query('BEGIN; LOCK TABLE second IN ACCESS EXCLUSIVE MODE')
  const jobId = text((await ask('POST', `${at}/profile`, {}))['jobId'])
  const waiting = `SELECT count(*) FROM pg_stat_activity WHERE datname = '${database}' AND wait_event_type = 'Lock'`
  while (Number((await postgres.query('postgres', waiting))[0]?.[0]) === 0) assert.ok(first.isRunning())
  await first.kill()

  const store = await openStore({ dataDir, databaseUrl: null })
  const rows = await store.db.selectFrom('profiles').selectAll().execute()
  await store[Symbol.asyncDispose]()
  assert.deepEqual(
    rows.map(({ table, run }) => [table, run]),
    [['first', jobId]],
  )
  const profile = JSON.parse(rows[0]?.profile ?? '') as { columns: { name: string }[] }
  assert.deepEqual(
    profile.columns.map(({ name }) => name),
    ['id', 'state'],
  )

  await locker.query('ROLLBACK')
  const second = await serve(dataDir, stack)
  const askAgain = await enter(second.address, 'sign-in')
  const job = async () => await askAgain('GET', `${at}/jobs/${jobId}`)
  while ((await job())['state'] === 'RUNNING') assert.ok(second.isRunning())
  const { state, result } = await job()
  assert.deepEqual([state, result], ['DONE', { tables: 2, columns: 4, skipped: [] }])
  const described = JSON.stringify(await askAgain('GET', `${at}/schema`))
  assert.equal(described.match(/"values":\[\{"value":"(open|paid)","share":0.5\}/g)?.length, 2)
  await second.kill()
})

async function serve(dataDir: string, stack: AsyncDisposableStack) {
  const env = environment({ PORT: '0', VITRINE_DATA_DIR: dataDir })
  const child = spawn(process.execPath, [MAIN], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const closed = once(child, 'close')
    child.kill('SIGKILL')
    await closed
  }
  stack.defer(kill)
  let out = ''
  child.stdout.on('data', (chunk) => (out += String(chunk)))
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null
  while (!/listens at (\S+)/.test(out)) {
    assert.ok(isRunning())
    await Promise.race([once(child.stdout, 'data'), once(child, 'close')])
  }
  return { address: /listens at (\S+)/.exec(out)?.[1] ?? '', kill, isRunning }
}

/** Returns a function that sends requests. Every request must succeed. */
async function enter(address: string, how: 'sign-up' | 'sign-in') {
  const signedIn = await fetch(`${address}/auth/${how}/email`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: address },
    body: JSON.stringify(how === 'sign-up' ? { ...PERSON, name: 'Ada' } : PERSON),
  })
  assert.equal(signedIn.status, 200, `${how}: ${signedIn.status}`)
  const cookie = signedIn.headers.getSetCookie().map((part) => part.split(';')[0])
  const { token } = (await (
    await fetch(`${address}/auth/token`, { headers: { cookie: cookie.join('; ') } })
  ).json()) as { token: string }
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  return async (method: string, path: string, body?: unknown): Promise<Record<string, unknown>> => {
    const res = await fetch(address + path, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const responseText = await res.text()
    assert.ok(res.ok, `${method} ${path}: ${res.status} ${responseText}`)
    return JSON.parse(responseText) as Record<string, unknown>
  }
}

function text(value: unknown): string {
  assert.equal(typeof value, 'string')
  return String(value)
}
