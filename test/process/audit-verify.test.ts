// Runs `vitrine audit verify` like an operator: beside running services on PostgreSQL, after a kill, and on the
// embedded store of a stopped service. Checks exit codes and reported rows.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import { openStore } from '../../src/store/open.ts'
import { environment } from '../support/environment.ts'
import { CLI, MAIN } from '../support/program.ts'
import { storeSource, type StoreSource } from '../support/stores.ts'

type Env = Readonly<Record<string, string>>
const own = (env: Env) => environment({ LOG_LEVEL: 'warn', ...env })

async function vitrine(args: readonly string[], env: Env) {
  const child = spawn(process.execPath, [CLI, ...args], { env: own(env) })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk) => (out += String(chunk)))
  child.stderr.on('data', (chunk) => (err += String(chunk)))
  const [code] = await once(child, 'close')
  return { code, out, err }
}
const verify = (env: Env) => vitrine(['audit', 'verify'], env)

/** Starts the service as another process, and signs up an account for `team()`. */
async function serve(env: Env) {
  const child = spawn(process.execPath, [MAIN], { env: own({ PORT: '0', ...env }) })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
  while (!/listens at \S+/.test(output)) {
    if (child.exitCode !== null) throw new Error(output)
    await Promise.race([once(child.stdout, 'data'), once(child, 'close')])
  }
  const base = /listens at (\S+)/.exec(output)?.[1] ?? ''
  const post = (path: string, body: object, headers: Env, method = 'POST') =>
    fetch(base + path, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  const email = `ada-${randomBytes(4).toString('hex')}@example.test`
  const account = { name: 'Ada', email, password: 'a long enough password' }
  const signUp = await patient(() => post('/auth/sign-up/email', account, { origin: base }))
  assert.equal(signUp.status, 200)
  const cookie = signUp.headers
    .getSetCookie()
    .map((line) => line.split(';', 1)[0])
    .join('; ')
  const signedIn = await patient(() => fetch(`${base}/auth/token`, { headers: { cookie } }))
  assert.equal(signedIn.status, 200)
  const { token } = (await signedIn.json()) as { token: string }
  const authorization = `Bearer ${token}`
  let [teams, last] = [0, '']
  return {
    output: () => output,
    /** Makes one audited change: creates a team or, if there are 100, renames the last one. */
    async team(): Promise<void> {
      const body = { name: `Team ${++teams}` }
      if (teams > 100) {
        assert.equal((await patient(() => post(`/teams/${last}`, body, { authorization }, 'PATCH'))).status, 200)
        return
      }
      const answer = await patient(() => post('/teams', body, { authorization }))
      assert.equal(answer.status, 201)
      last = ((await answer.json()) as { id: string }).id
    },
    async end(signal: NodeJS.Signals): Promise<void> {
      const closed = once(child, 'close')
      child.kill(signal)
      await closed
    },
  }
}

/**
 * Repeats a refused request. On a busy machine, the PostgreSQL store may be too slow, so that the service refuses a
 * request without changing anything.
 */
async function patient(ask: () => Promise<Response>): Promise<Response> {
  for (;;) {
    const answer = await ask()
    if (answer.status !== 503) return answer
    await answer.text()
  }
}

const folders: string[] = []
after(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))))
async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'vitrine-verify-'))
  folders.push(made)
  return made
}

describe('audit verify on the embedded store', () => {
  test('audit verify refuses to run beside the service, then reports an intact audit, then names a changed row', async () => {
    const env = { VITRINE_DATA_DIR: await folder() }
    const service = await serve(env)
    for (let n = 0; n < 5; n++) await service.team()
    const busy = await verify(env)
    assert.deepEqual([busy.code, busy.out], [2, ''])
    assert.match(busy.err, /is in use by another Vitrine process. Stop that process first/)
    await service.end('SIGTERM')

    const intact = await verify(env)
    assert.deepEqual([intact.code, intact.err], [0, ''])
    assert.match(
      intact.out,
      /^chain 1 \(\S+, begun 20\S+\): holds: \d+ rows; ends at number \d+, \S+\nThe audit holds\.\n$/,
    )

    const copy = await folder()
    await cp(env.VITRINE_DATA_DIR, copy, { recursive: true })
    const db = new DatabaseSync(join(copy, 'vitrine.db'))
    const row = db.prepare(`select id from audit where action = 'createTeam' order by seq limit 1 offset 2`).get()
    db.prepare('update audit set account_id = ? where id = ?').run('somebody else', String(row?.['id']))
    db.close()
    const broken = await verify({ VITRINE_DATA_DIR: copy })
    assert.equal(broken.code, 1)
    assert.match(
      broken.out,
      new RegExp(`DOES NOT HOLD: row ${String(row?.['id'])} \\(number \\d+, of .+, createTeam\\) was changed`),
    )
    assert.match(broken.out, /The audit does not hold/)

    const another = await verify({ ...env, VITRINE_SECRET_KEY: randomBytes(32).toString('base64') })
    assert.deepEqual([another.code, another.out], [2, ''])
    assert.match(another.err, /written with another VITRINE_SECRET_KEY/)
    await rm(join(copy, 'secret.key'))
    const keyless = await verify({ VITRINE_DATA_DIR: copy })
    assert.equal(keyless.code, 2)
    assert.match(keyless.err, /There is no .+secret\.key, and VITRINE_SECRET_KEY is not set/)
    assert.ok(!(await readdir(copy)).includes('secret.key'))
  })

  test('after a kill, the next start links the audit rows that have no link yet, and every chain is intact', async () => {
    const env = { VITRINE_DATA_DIR: await folder() }
    // The service links rows after half a second. On a busy machine, the kill may come later. So repeat until a kill
    // leaves a row without a link.
    for (let [kills, hasUnlinked] = [0, false]; kills < 2 || !hasUnlinked; kills++) {
      assert.ok(kills < 30, 'no kill left a row without a link')
      const service = await serve(env)
      await service.team()
      await service.end('SIGKILL')
      const killed = await verify(env)
      assert.equal(killed.code, 0, killed.out)
      hasUnlinked = /not linked yet: written by this service: [1-9]/.test(killed.out)
    }
    const service = await serve(env)
    while (!/left without a link/.test(service.output())) await service.team()
    await service.end('SIGTERM')
    const { code, out } = await verify(env)
    assert.equal(code, 0, out)
    assert.doesNotMatch(out, /not linked yet/)
  })

  test('audit verify creates no store, refuses an older store, and prints its usage', async () => {
    const empty = await folder()
    const none = await verify({ VITRINE_DATA_DIR: empty })
    assert.deepEqual([none.code, none.out], [2, ''])
    assert.match(none.err, /There is no store in the data folder/)
    assert.deepEqual(await readdir(empty), [])
    {
      await using store = await openStore({ dataDir: empty, databaseUrl: null })
      await store.db.deleteFrom('jobs').execute()
    }
    const db = new DatabaseSync(join(empty, 'vitrine.db'))
    db.exec(`delete from migrations where name = (select max(name) from migrations)`)
    db.close()
    assert.match((await verify({ VITRINE_DATA_DIR: empty })).err, /of an older version of Vitrine/)

    const help = await vitrine(['audit', 'verify', '--help'], {})
    assert.equal(help.code, 0)
    assert.match(help.out, /^Usage: vitrine audit verify\n[^]+Exit code: 0 /)
    for (const args of [['audit'], ['audit', 'check'], ['audit', 'verify', 'all']]) {
      const wrong = await vitrine(args, {})
      assert.deepEqual([wrong.code, wrong.out], [2, ''])
      assert.match(wrong.err, /Usage: vitrine audit verify/)
    }
  })
})

describe('audit verify on PostgreSQL', () => {
  let source: StoreSource
  before(async () => {
    source = await storeSource('postgres')
  })
  after(() => source[Symbol.asyncDispose]())

  test('audit verify finds no problem beside two running services or after a kill, and reports a removed row', async () => {
    const { databaseUrl } = await source.config()
    assert.ok(databaseUrl !== null)
    const env = { DATABASE_URL: databaseUrl, VITRINE_SECRET_KEY: randomBytes(32).toString('base64') }
    const [one, other] = [
      await serve({ ...env, VITRINE_DATA_DIR: await folder() }),
      await serve({ ...env, VITRINE_DATA_DIR: await folder() }),
    ]
    let ended = false
    const writing = Promise.all(
      [one, other].map(async (service) => {
        while (!ended) await service.team()
      }),
    )
    for (let n = 0; n < 3; n++) {
      const live = await verify(env)
      assert.deepEqual([live.code, live.err], [0, ''], live.out)
    }
    ended = true
    await writing
    await one.end('SIGKILL')
    await other.end('SIGTERM')
    const quiet = await verify(env)
    assert.equal(quiet.code, 0, quiet.out)
    assert.match(quiet.out, /chain 1 [^]+chain 2 /)

    await using store = await openStore({ dataDir: '', databaseUrl })
    await store.db.deleteFrom('audit').where('seq', '=', 2).execute()
    const broken = await verify(env)
    assert.equal(broken.code, 1)
    assert.equal(broken.out.match(/DOES NOT HOLD: row number 2 removed/g)?.length, 2)
  })
})
