// A full disk under the store: nothing is lost or half-written, what cannot be written down is refused with 503, and when
// there is room again everything is there. On a real file system of a few megabytes, so only where one may be mounted.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, rmdirSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openSecrets } from '../../src/secrets.ts'
import { openStore } from '../../src/store/open.ts'
import { findingsOf } from '../support/audited.ts'
import { openShop } from '../support/shop.ts'

const MEGABYTES = 24

/** A small disk, or why there is none. */
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

/** Leaves no byte. */
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

/** What is left of the last page. */
function writeEnd(path: string): void {
  try {
    writeFileSync(join(path, 'filler-end'), Buffer.alloc(4096))
  } catch {
    // It was full already.
  }
}

function empty(path: string): void {
  execFileSync('sh', ['-c', 'rm -f "$1"/filler-*', 'sh', path])
}

test('a full disk under the audit', async (context) => {
  const disk = smallDisk()
  if (typeof disk === 'string') return context.skip(disk)
  using at = disk
  const dataDir = join(at.path, 'data')
  const config = { dataDir, databaseUrl: null, secretKey: null }
  const paths = { team: '', queries: 0 }
  {
    await using shop = await openShop({ env: { VITRINE_DATA_DIR: dataDir } })
    paths.team = `/teams/${shop.teamId}`
    const audit = async () => (await shop.owner.must('GET', `${paths.team}/audit?limit=1&action=changeTeam`)).items[0]
    assert.equal((await shop.query('SELECT 1')).status, 200)
    paths.queries++
    fill(at.path)

    // Queries are answered while their rows can wait in memory, then refused; none is answered without its row.
    const long = `SELECT 1 /* ${'x'.repeat(60_000)} */`
    const told = new Map<string, number>()
    for (let n = 0; n < 3_000 && !told.has('503 OVERLOADED'); n++) {
      const answer = await shop.query(long)
      if (answer.status === 200) paths.queries++
      const code = `${answer.status} ${answer.json?.code ?? ''}`.trim()
      told.set(code, (told.get(code) ?? 0) + 1)
      if (answer.status === 503) assert.ok(Number(answer.headers.get('retry-after')) > 0)
    }
    assert.deepEqual([...told.keys()].sort(), ['200', '503 OVERLOADED'])
    assert.ok((told.get('200') ?? 0) > 100)
    const change = await shop.owner.ask('PATCH', paths.team, { name: 'changed while full' })
    assert.deepEqual([change.status, change.json.code], [503, 'OVERLOADED'])
    assert.notEqual((await shop.owner.must('GET', paths.team)).name, 'changed while full')
    for (const path of ['audit', 'audit/export', 'usage']) {
      assert.deepEqual([path, (await shop.owner.ask('GET', `${paths.team}/${path}`)).status], [path, 503])
    }
    assert.equal((await shop.app.ask('GET', '/health/live')).status, 200)

    empty(at.path)
    // The small disk holds only some of what waits: a larger one, as an operator would make it.
    execFileSync('mount', ['-o', `remount,size=${MEGABYTES * 20}m`, at.path])
    assert.equal((await audit()).action, 'changeTeam')
    assert.equal((await shop.query('SELECT 2')).status, 200)
    paths.queries++
    assert.equal((await shop.owner.ask('PATCH', paths.team, { name: 'changed' })).status, 200)
  }
  await using store = await openStore(config)
  const answered = await store.db
    .selectFrom('audit')
    .select(({ fn }) => fn.countAll<number>().as('rows'))
    .where('action', '=', 'runQuery')
    .where('outcome', '=', 'ANSWERED')
    .executeTakeFirstOrThrow()
  assert.equal(answered.rows, paths.queries)
  assert.deepEqual(await findingsOf(store, (await openSecrets(config)).derive('audit chain')), [])
})
