// The disk of the store is full. While the service runs, no audit row is lost or half-written. Requests that cannot be
// recorded get 503. If the service ends on a full disk, it says how many audit rows it lost. The test needs the right
// to mount a small file system.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, rmdirSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openSecrets } from '../../src/secrets.ts'
import { openStore } from '../../src/store/open.ts'
import { findingsOf } from '../support/audited.ts'
import { startPostgres } from '../support/postgres.ts'
import { startService } from '../support/service.ts'
import { openShop } from '../support/shop.ts'

const MEGABYTES = 24

/** If mounting fails, returns the reason. */
function smallDisk(): { readonly path: string; [Symbol.dispose](): void } | string {
  const path = mkdtempSync(join(tmpdir(), 'vitrine-small-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${MEGABYTES}m`, 'vitrine-test', path], { stdio: 'pipe' })
  } catch {
    rmdirSync(path)
    return 'this user may not mount a small file system'
  }
  return {
    path,
    [Symbol.dispose]() {
      execFileSync('umount', [path])
      rmdirSync(path)
    },
  }
}

function fill(path: string): void {
  for (let size = 1 << 20; size >= 512; size /= 2) {
    for (let n = 0; statfsSync(path).bavail > 0; n++) {
      try {
        writeFileSync(join(path, `filler-${size}-${n}`), Buffer.alloc(size))
      } catch {
        rmSync(join(path, `filler-${size}-${n}`), { force: true })
        break
      }
    }
  }
  writeEnd(path)
}

/** Fills the last free page. */
function writeEnd(path: string): void {
  try {
    writeFileSync(join(path, 'filler-end'), Buffer.alloc(4096))
  } catch {
    // The disk is full, as intended.
  }
}

function removeFillers(path: string): void {
  execFileSync('sh', ['-c', 'rm -f "$1"/filler-*', 'sh', path])
}

test('a full disk loses no audit row, and requests that cannot be recorded get 503', async (context) => {
  const disk = smallDisk()
  if (typeof disk === 'string') return context.skip(disk)
  using at = disk
  const dataDir = join(at.path, 'data')
  const config = { dataDir, databaseUrl: null, secretKey: null }
  const seen = { team: '', queries: 0 }
  {
    await using shop = await openShop({ env: { VITRINE_DATA_DIR: dataDir } })
    seen.team = `/teams/${shop.teamId}`
    const audit = async () => (await shop.owner.must('GET', `${seen.team}/audit?limit=1&action=changeTeam`)).items[0]
    assert.equal((await shop.query('SELECT 1')).status, 200)
    seen.queries++
    fill(at.path)

    // Queries are answered as long as their audit rows fit in the queue in memory. After that they are refused.
    const long = `SELECT 1 /* ${'x'.repeat(60_000)} */`
    const counts = new Map<string, number>()
    for (let n = 0; n < 3_000 && !counts.has('503 OVERLOADED'); n++) {
      const answer = await shop.query(long)
      if (answer.status === 200) seen.queries++
      const code = `${answer.status} ${answer.json?.code ?? ''}`.trim()
      counts.set(code, (counts.get(code) ?? 0) + 1)
      if (answer.status === 503) assert.ok(Number(answer.headers.get('retry-after')) > 0)
    }
    assert.deepEqual([...counts.keys()].sort(), ['200', '503 OVERLOADED'])
    assert.ok((counts.get('200') ?? 0) > 0)
    const ready = await shop.app.ask('GET', '/health/ready')
    assert.deepEqual([ready.status, ready.json.error], [503, 'The audit cannot be written.'])
    const change = await shop.owner.ask('PATCH', seen.team, { name: 'changed while full' })
    assert.deepEqual([change.status, change.json.code], [503, 'OVERLOADED'])
    assert.notEqual((await shop.owner.must('GET', seen.team)).name, 'changed while full')
    for (const path of ['audit', 'audit/export', 'usage']) {
      assert.deepEqual([path, (await shop.owner.ask('GET', `${seen.team}/${path}`)).status], [path, 503])
    }
    assert.equal((await shop.app.ask('GET', '/health/live')).status, 200)

    removeFillers(at.path)
    // The rows in the queue do not fit on the small disk. Enlarge it, as an operator would.
    execFileSync('mount', ['-o', `remount,size=${MEGABYTES * 20}m`, at.path])
    assert.equal((await audit()).action, 'changeTeam')
    assert.equal((await shop.app.ask('GET', '/health/ready')).status, 200)
    assert.equal((await shop.query('SELECT 2')).status, 200)
    seen.queries++
    assert.equal((await shop.owner.ask('PATCH', seen.team, { name: 'changed' })).status, 200)
  }
  await using store = await openStore(config)
  const answered = await store.db
    .selectFrom('audit')
    .select(({ fn }) => fn.countAll<number>().as('rows'))
    .where('action', '=', 'runQuery')
    .where('outcome', '=', 'ANSWERED')
    .executeTakeFirstOrThrow()
  assert.equal(answered.rows, seen.queries)
  assert.deepEqual(await findingsOf(store, (await openSecrets(config)).derive('audit chain')), [])
})

test('a process that ends on a full disk says how many audit rows it lost', async (context) => {
  const disk = smallDisk()
  if (typeof disk === 'string') return context.skip(disk)
  using at = disk
  await using postgres = await startPostgres()
  const spec = { host: postgres.host, port: postgres.port, username: postgres.superuser, password: postgres.password }
  const database = await postgres.createDatabase('shop', 'CREATE TABLE n (i int)')
  await using app = await startService(join(at.path, 'data'))
  const owner = await app.person('Olga')
  const teamId = await app.team(owner)
  const id = await app.datasource(owner, teamId, { ...spec, database }, [
    { schema: 'public', table: 'n', columns: null },
  ])
  const token = await app.key(owner)
  fill(at.path)
  const path = `/teams/${teamId}/datasources/${id}/query`
  const sql = `SELECT 1 /* ${'x'.repeat(60_000)} */`
  let [answered, refused] = [0, 0]
  while (refused === 0) {
    const { status } = await app.ask('POST', path, { token, body: { sql } })
    if (status === 200) answered++
    else refused++
  }
  app.signal('SIGTERM')
  assert.equal(await app.ended, 1)
  const line = app
    .output()
    .split('\n')
    .find((text) => text.includes('audit: rows are lost'))
  const { rows } = JSON.parse(line ?? '{}')
  // The number of lost rows varies: the first rows may fit on the disk, and a refused query has a row too.
  assert.ok(rows >= 1 && rows <= answered + refused, `${rows} of ${answered}`)
})
