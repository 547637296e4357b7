// Tests the demo's database as the service starts it. It is created once, is read-only, and stops with its owner.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { Client } from 'pg'
import { packagedNative } from './account.ts'
import exposure from './exposure.json' with { type: 'json' }
import { startDemoServer, type DemoServer } from './server.ts'

const skip = packagedNative() === null ? 'no PostgreSQL from npm for this platform' : false
let root: string

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'vitrine-demo-test-'))
})
after(async () => {
  await rm(root, { recursive: true, force: true })
})

async function rows(at: DemoServer, sql: string): Promise<unknown[]> {
  const client = new Client({
    host: at.host,
    port: at.port,
    database: at.database,
    user: at.username,
    password: at.password,
  })
  await client.connect()
  try {
    return (await client.query<unknown[]>({ text: sql, rowMode: 'array' })).rows
  } finally {
    await client.end()
  }
}

const start = (dataDir: string, signal = AbortSignal.timeout(60_000)): Promise<DemoServer> =>
  startDemoServer({ dataDir, say: assert.fail, signal })

test('is created on the first start in a closed data folder, and found on the next', { skip }, async () => {
  let port: number
  let password: string
  {
    await using first = await start(root)
    ;({ port, password } = first)
    assert.deepEqual(await rows(first, 'SELECT count(*)::int FROM orders'), [[2200]])
    assert.equal((await stat(root)).mode & 0o077, 0, 'the data folder stays closed to others')
    assert.equal((await stat(join(root, 'demo-postgres.json'))).mode & 0o077, 0)
  }
  await using again = await start(root)
  assert.deepEqual([again.port, again.password], [port, password])
  assert.deepEqual(await rows(again, 'SELECT count(*)::int FROM orders'), [[2200]])
})

test('the login can read only exposed columns and cannot write', { skip }, async () => {
  await using demo = await start(root)
  for (const { table, columns } of exposure.tables) {
    const list = columns?.join(', ') ?? '*'
    assert.ok((await rows(demo, `SELECT ${list} FROM ${table}`)).length > 10, table)
  }
  for (const sql of [
    'SELECT email FROM customers',
    'SELECT * FROM staff_logins',
    'SELECT salary FROM employees',
    'SELECT card_last4 FROM payments',
    'SELECT purchase_price FROM products',
  ]) {
    await assert.rejects(rows(demo, sql), /permission denied/, sql)
  }
  await assert.rejects(rows(demo, 'CREATE TABLE x (a int)'), /read-only transaction|permission denied/)
  await assert.rejects(rows(demo, 'SET TRANSACTION READ WRITE; DELETE FROM reviews'), /permission denied/)
  await assert.rejects(rows({ ...demo, password: 'wrong' }, 'SELECT 1'), /password authentication failed/)
})

test('stops when its process is killed, and starts again with an outdated postmaster.pid', { skip }, async () => {
  const program = `import { startDemoServer } from ${JSON.stringify(import.meta.resolve('./server.ts'))}
    const demo = await startDemoServer({ dataDir: ${JSON.stringify(root)}, say: () => {}, signal: AbortSignal.timeout(60000) })
    console.log(demo.port); setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  const pid = await readFile(join(root, 'demo-postgres/postmaster.pid'), 'utf8')
  child.kill('SIGKILL')
  await once(child, 'exit')
  {
    // The old server may still be stopping. The new start signals it and waits for its end.
    await using next = await start(root)
    assert.equal(String(next.port), line)
    assert.deepEqual(await rows(next, 'SELECT count(*)::int FROM orders'), [[2200]])
  }
  // This is the state after a crash of the machine, when another process has the pid of the server.
  await writeFile(join(root, 'demo-postgres/postmaster.pid'), pid.replace(/^\d+/, String(process.pid)))
  await using after = await start(root)
  assert.deepEqual(await rows(after, 'SELECT count(*)::int FROM orders'), [[2200]])
})

test('after an aborted first start, the next start creates the database again', { skip }, async () => {
  const dataDir = await mkdtemp(join(root, 'given-up-'))
  await chmod(dataDir, 0o700)
  // Abort while the cluster is being created, which takes about a second.
  const starting = start(dataDir, AbortSignal.timeout(300))
  await assert.rejects(starting, { name: 'TimeoutError' })
  await using demo = await start(dataDir)
  assert.deepEqual(await rows(demo, 'SELECT count(*)::int FROM staff_logins').catch(() => 'closed'), 'closed')
})

test('refuses a folder of another PostgreSQL version, and says which folder to remove', { skip }, async () => {
  await writeFile(join(root, 'demo-postgres/PG_VERSION'), '17\n')
  await assert.rejects(start(root), /created by PostgreSQL 17: remove .*demo-postgres to have it created again by 18/)
})
