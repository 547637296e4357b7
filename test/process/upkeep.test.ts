// Tests what an operator does with a store: back it up while it is used, restore it, move it to PostgreSQL and back,
// rotate its root key, and check it with the doctor.
import assert from 'node:assert/strict'
import { copyFile, link, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { openStore } from '../../src/store/open.ts'
import { migrate, MIGRATIONS } from '../../src/store/migrate.ts'
import { vitrine } from '../support/command.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { startService, type Service } from '../support/service.ts'

const NEW_KEY = Buffer.alloc(32, 3).toString('base64')

interface Used {
  readonly token: string
  readonly email: string
  readonly path: string
  readonly hookPath: string
}

describe('upkeep of a store', () => {
  let root: string
  let postgres: TestPostgres
  let used: Used
  /** The data folder of a service that was used and then stopped. */
  let folder: string
  /** A backup of this folder, written while the service ran. */
  let file: string
  let key: string

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'vitrine-upkeep-'))
    postgres = await startPostgres()
    folder = join(root, 'used')
    file = join(root, 'store.backup')
    const service = await startService(folder)
    used = await use(service)
    const written = await vitrine(['backup', file], { VITRINE_DATA_DIR: folder })
    assert.deepEqual([written.code, written.err], [0, ''])
    service.signal('SIGTERM')
    assert.equal(await service.ended, 0)
    key = (await readFile(join(folder, 'secret.key'), 'utf8')).trim()
  })
  after(async () => {
    await postgres[Symbol.asyncDispose]()
    await rm(root, { recursive: true, force: true })
  })

  async function use(service: Service): Promise<Used> {
    const database = await postgres.createDatabase('shop', 'CREATE TABLE n (i int); INSERT INTO n VALUES (7)')
    const { host, port, superuser: username, password } = postgres
    const owner = await service.person('Olga')
    const teamId = await service.team(owner)
    const spec = { host, port, database, username, password }
    const id = await service.datasource(owner, teamId, spec, [{ schema: 'public', table: 'n', columns: null }])
    const webhook = { name: 'pager', url: 'http://127.0.0.1:1/', events: ['drift'] }
    const hook = await owner.must('POST', `/teams/${teamId}/webhooks`, webhook)
    const hookPath = `/teams/${teamId}/webhooks/${hook.id}/test`
    const token = await service.key(owner)
    const path = `/teams/${teamId}/datasources/${id}/query`
    await answers(service, { token, email: owner.email, path, hookPath })
    return { token, email: owner.email, path, hookPath }
  }

  /**
   * Fails unless the service answers a query. The answer needs the key, the exposure, and the datasource's password.
   */
  async function answers(service: Service, { token, path }: Used = used): Promise<void> {
    const { status, json } = await service.ask('POST', path, { token, body: { sql: 'SELECT i FROM n' } })
    assert.deepEqual([status, json.rows], [200, [[7]]])
  }

  async function works(env: Record<string, string>, dataDir: string): Promise<void> {
    const service = await startService(dataDir, env)
    await answers(service)
    // If these calls work, the sign-in can use its keys.
    const owner = await service.signIn(used.email)
    // The address and the secret of the webhook are sealed. If they could not be opened, the test message would fail
    // with INTERNAL.
    assert.equal((await owner.must('POST', used.hookPath)).error, 'The receiver cannot be reached.')
    service.signal('SIGTERM')
    assert.equal(await service.ended, 0)
    const verified = await vitrine(['audit', 'verify'], { VITRINE_DATA_DIR: dataDir, ...env })
    assert.equal(verified.code, 0, verified.out + verified.err)
  }

  async function copied(): Promise<string> {
    const to = await mkdtemp(join(root, 'copy-'))
    for (const name of ['vitrine.db', 'secret.key']) await copyFile(join(folder, name), join(to, name))
    return to
  }

  test('after a backup of a running service is restored, the service answers', async () => {
    assert.equal((await stat(file)).mode & 0o777, 0o600)
    const dataDir = join(root, 'restored')
    const restored = await vitrine(['restore', file], { VITRINE_DATA_DIR: dataDir, VITRINE_SECRET_KEY: key })
    assert.deepEqual([restored.code, restored.err], [0, ''])
    await works({ VITRINE_SECRET_KEY: key }, dataDir)
  })

  test('a backup never replaces a file, and a restore never replaces a store', async () => {
    const env = { VITRINE_DATA_DIR: folder }
    assert.match((await vitrine(['backup', file], env)).err, /store\.backup exists\. Name a new file\.\n$/)
    assert.match((await vitrine(['restore', file], env)).err, /^There is a store in .*Set VITRINE_DATA_DIR to another/)
    assert.match((await vitrine(['restore'], env)).err, /^Usage: vitrine restore FILE\n$/)
  })

  test('a damaged backup, another key and a newer version are refused with a message of one line', async () => {
    const damaged = join(root, 'damaged.backup')
    const bytes = await readFile(file)
    await writeFile(
      damaged,
      Buffer.concat([bytes.subarray(0, 20_000), Buffer.alloc(60_000, 7), bytes.subarray(80_000)]),
    )
    const newer = join(root, 'newer')
    await mkdir(newer)
    await copyFile(file, join(newer, 'vitrine.db'))
    {
      await using store = await openStore({ dataDir: newer, databaseUrl: null })
      await migrate(store.db, 'sqlite', [...MIGRATIONS, { name: '9999-later', up: async () => undefined }])
    }
    const cases: readonly [string, string, RegExp][] = [
      [damaged, key, /damaged/],
      [file, NEW_KEY, /^This store was written with another VITRINE_SECRET_KEY/],
      [
        join(newer, 'vitrine.db'),
        key,
        /^The store was written by a newer version of Vitrine \(it has 9999-later\)\. Run that/,
      ],
    ]
    for (const [from, secret, message] of cases) {
      const dataDir = join(root, 'never')
      const { code, err } = await vitrine(['restore', from], { VITRINE_DATA_DIR: dataDir, VITRINE_SECRET_KEY: secret })
      assert.equal(code, 1)
      assert.match(err, message)
      assert.equal(err.split('\n').length, 2, err)
      assert.equal(existsSync(join(dataDir, 'vitrine.db')), false)
    }
  })

  test('a store moves to PostgreSQL and back', async () => {
    const databaseUrl = postgres.url(await postgres.createDatabase('moved'))
    const env = { DATABASE_URL: databaseUrl, VITRINE_SECRET_KEY: key }
    const dataDir = join(root, 'beside')
    const imported = await vitrine(['import', file], env)
    assert.deepEqual([imported.code, imported.err], [0, ''])
    await works(env, dataDir)
    assert.match((await vitrine(['import', file], env)).err, /contains a store with accounts\. Name an empty database/)

    const back = join(root, 'back.backup')
    assert.equal((await vitrine(['export', back], env)).code, 0)
    const again = join(root, 'again')
    assert.equal((await vitrine(['import', back], { VITRINE_DATA_DIR: again, VITRINE_SECRET_KEY: key })).code, 0)
    await works({ VITRINE_SECRET_KEY: key }, again)
  })

  test('the root key of the data folder is rotated, also after an interruption', async () => {
    for (const interrupted of [false, true]) {
      const dataDir = await copied()
      if (interrupted) await link(join(dataDir, 'secret.key'), join(dataDir, 'secret.key.previous'))
      const rotated = await vitrine(['secrets', 'rotate'], { VITRINE_DATA_DIR: dataDir })
      assert.deepEqual([rotated.code, rotated.err], [0, ''])
      assert.match(rotated.out, /^3 secrets were sealed with the new root key/)
      assert.notEqual((await readFile(join(dataDir, 'secret.key'), 'utf8')).trim(), key)
      assert.equal(existsSync(join(dataDir, 'secret.key.previous')), false)
      const old = await vitrine(['doctor'], { VITRINE_DATA_DIR: dataDir, VITRINE_SECRET_KEY: key })
      assert.match(old.out, /^FAIL {2}This store was written with another VITRINE_SECRET_KEY/m)
      await works({}, dataDir)
    }
  })

  test('with two root keys in either order, the service answers before the rotation, and with the new key after it', async () => {
    const dataDir = await copied()
    await rm(join(dataDir, 'secret.key'))
    const both = { VITRINE_SECRET_KEY: NEW_KEY, VITRINE_SECRET_KEY_PREVIOUS: key }
    const env = { VITRINE_DATA_DIR: dataDir }
    await works(both, dataDir)
    await works({ VITRINE_SECRET_KEY: key, VITRINE_SECRET_KEY_PREVIOUS: NEW_KEY }, dataDir)
    assert.equal((await vitrine(['secrets', 'rotate'], { ...env, ...both })).code, 0)
    const again = await vitrine(['secrets', 'rotate'], { ...env, ...both })
    assert.match(again.out, /^0 secrets were sealed/)
    await works({ VITRINE_SECRET_KEY_COMMAND: `printf %s ${NEW_KEY}` }, dataDir)
  })

  test('the command for the root key must print a key, and its output is never shown', async () => {
    for (const [command, message] of [
      ['echo hunter2', /^VITRINE_SECRET_KEY_COMMAND must print 32 bytes in base64/],
      ['echo hunter2 >&2; exit 3', /^VITRINE_SECRET_KEY_COMMAND ended with the code 3/],
    ] as const) {
      const { code, err } = await vitrine(['serve'], { VITRINE_DATA_DIR: folder, VITRINE_SECRET_KEY_COMMAND: command })
      assert.equal(code, 1)
      assert.match(err, message)
      assert.doesNotMatch(err, /hunter2/)
    }
  })

  test('the doctor accepts a sound store, and names the problems of the settings', async () => {
    const sound = await vitrine(['doctor'], { VITRINE_DATA_DIR: folder })
    assert.deepEqual([sound.code, sound.err], [0, ''])
    assert.match(
      sound.out,
      /^PASS {2}The store \(sqlite\) opens, has the schema of this version of Vitrine, and belongs to the root key\.$/m,
    )
    assert.match(sound.out, /^PASS {2}All 3 secrets of datasources and webhooks can be opened\.$/m)
    const env = { VITRINE_DATA_DIR: folder, HOST: '0.0.0.0', SMTP_URL: 'smtp://127.0.0.1:1' }
    const wrong = await vitrine(['doctor'], env)
    assert.equal(wrong.code, 1)
    assert.match(wrong.out, /^WARN {2}VITRINE_PUBLIC_URL is not set/m)
    assert.match(wrong.out, /^FAIL {2}The server of SMTP_URL does not accept connections at 127\.0\.0\.1:1\./m)
    assert.match((await vitrine(['doctor'], { PORT: 'x' })).out, /^FAIL {2}The environment is not valid:\n {2}PORT: /)
  })
})
