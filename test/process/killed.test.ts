// kill -9 comes at random moments, during queries, changes and starts. Afterwards, the store opens again. Every
// answered change is stored with its audit row. Every query that the service reported as written is in the audit once.
// The chains are intact. TEST_KILLS is the number of kills for each store.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { newest } from '../../src/audit/reading/newest-rows.ts'
import { asId, type TeamId } from '../../src/ids.ts'
import { openSecrets } from '../../src/secrets.ts'
import { openStore } from '../../src/store/open.ts'
import { findingsOf } from '../support/audited.ts'
import { environment } from '../support/environment.ts'
import { startPostgres } from '../support/postgres.ts'
import { MAIN } from '../support/program.ts'
import { startService } from '../support/service.ts'

const SECRET = Buffer.alloc(32, 9)
const KILLS = Number(process.env['TEST_KILLS'] ?? 4)
const CLIENTS = 4
/** An early kill comes at most this long after the start of the process. */
const EARLY_MS = 700
/** A later kill comes after at most this many answers. */
const ANSWERS = 800
/** On a busy machine, a later kill comes after this time at the latest. */
const LATEST_MS = 5_000

/** What one process answered before it was killed. */
class Life {
  /** The number of each answered query, and the time of the answer. */
  readonly answered = new Map<number, number>()
  /** The names of the team that the service has confirmed, in this order. */
  readonly named: string[] = []
  /** The names of the team that were sent, in this order. */
  readonly asked: string[] = []
  /** Queries that were answered before this time are in the store, as the service has reported. */
  writtenBefore = -Infinity
  listened = false
  next: number

  constructor(from: number) {
    this.next = from
  }

  /** The names that were sent after the last confirmed name. They may be stored. */
  get unanswered(): readonly string[] {
    return this.asked.slice(this.asked.indexOf(this.named.at(-1) ?? '') + 1)
  }
}

for (const dialect of ['sqlite', 'postgres'] as const) {
  test(`${KILLS} × kill -9 with the store on ${dialect} lose no change and no written query`, async (t) => {
    await using stack = new AsyncDisposableStack()
    const server = stack.use(await startPostgres())
    const database = await server.createDatabase('shop', 'CREATE TABLE n (i int); INSERT INTO n VALUES (1), (2)')
    const databaseUrl = dialect === 'sqlite' ? null : server.url(await server.createDatabase('store'))
    const dataDir = await mkdtemp(join(tmpdir(), 'vitrine-killed-'))
    stack.defer(() => rm(dataDir, { recursive: true, force: true }))
    const env = {
      VITRINE_SECRET_KEY: SECRET.toString('base64'),
      ...(databaseUrl !== null && { DATABASE_URL: databaseUrl }),
    }
    const login = { host: server.host, port: server.port, username: server.superuser, password: server.password }
    const world = await prepare(dataDir, env, { ...login, database })

    const auditKey = (await openSecrets({ secretKey: SECRET, dataDir })).derive('audit chain')
    let [answers, changes, unwritten, early] = [0, 0, 0, 0]
    for (let kill = 0, from = 0; kill < KILLS; kill++) {
      const life = await liveAndDie({ ...world, dataDir, env, from, hasName: kill })
      await using store = await openStore({ dataDir, databaseUrl })
      const found = await foundIn(store, world.teamId, from)
      for (const [query, at] of life.answered) {
        if (at < life.writtenBefore) assert.equal(found.queries.get(query), 1, `query ${query} of kill ${kill}`)
        else if (!found.queries.has(query)) unwritten++
      }
      for (const [query, times] of found.queries)
        assert.equal(times, 1, `query ${query} is in the audit ${times} times`)
      const { name } = await store.db.selectFrom('teams').select('name').executeTakeFirstOrThrow()
      if (life.asked.length > 0) {
        assert.ok([life.named.at(-1) ?? world.name, ...life.unanswered].includes(name), `${name} of kill ${kill}`)
        for (const each of life.named) assert.equal(found.names.get(each), 1, `the change to ${each} has one row`)
      }
      world.name = name
      if (kill % 10 === 9 || kill === KILLS - 1) assert.deepEqual(await findingsOf(store, auditKey), [])
      answers += life.answered.size
      changes += life.named.length
      if (!life.listened) early++
      from = life.next
    }
    report(
      t,
      `${answers} queries and ${changes} changes were answered, ${early} kills came before the service listened`,
    )
    report(t, `${unwritten} queries of the last moments have no row`)
    {
      await using app = await startService(dataDir, env)
      assert.equal((await app.ask('GET', '/health/ready')).status, 200)
      app.signal('SIGTERM')
      assert.equal(await app.ended, 0)
    }
  })
}

const report = (t: TestContext, line: string) => t.diagnostic(line)

/** Creates a team with a datasource and a key. Returns their ids, the key, the owner's cookie and the team's name. */
async function prepare(dataDir: string, env: Record<string, string>, spec: object) {
  // Disposing the service would remove the data folder.
  const app = await startService(dataDir, env)
  const owner = await app.person('Olga')
  const teamId = asId<TeamId>(await app.team(owner))
  await owner.must('PATCH', `/teams/${teamId}`, { settings: { queryBudget: { limit: 10_000_000, windowSeconds: 60 } } })
  const id = await app.datasource(owner, teamId, spec, [{ schema: 'public', table: 'n', columns: null }])
  const key = await app.key(owner)
  const { name } = await owner.must('GET', `/teams/${teamId}`)
  app.signal('SIGTERM')
  assert.equal(await app.ended, 0)
  return { teamId, id, key, cookie: owner.cookie, name: String(name) }
}

interface Place {
  readonly dataDir: string
  readonly env: Record<string, string>
  readonly teamId: TeamId
  readonly id: string
  readonly key: string
  readonly cookie: string
  readonly from: number
  readonly hasName: number
}

/** About a third of the kills come during the start, unless the service already listens. */
async function liveAndDie(place: Place): Promise<Life> {
  const child = spawn(process.execPath, [MAIN], {
    env: environment({
      PORT: '0',
      VITRINE_DATA_DIR: place.dataDir,
      VITRINE_METRICS_ADDR: '127.0.0.1:0',
      ...place.env,
    }),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  let out = ''
  child.stdout.on('data', (chunk) => (out += String(chunk)))
  const life = new Life(place.from)
  const dead = new AbortController()
  const kill = () => {
    child.kill('SIGKILL')
    dead.abort()
  }
  const early = Math.random() < 1 / 3 ? setTimeout(kill, Math.random() * EARLY_MS) : null
  const ready = () => /listens at \S+\n/.test(out) && /listening for probes and collectors/.test(out)
  while (!ready() && child.exitCode === null && child.signalCode === null) {
    await Promise.race([once(child.stdout, 'data'), closed])
  }
  if (ready()) {
    life.listened = true
    if (early !== null) clearTimeout(early)
    const work = load(place, life, out, dead.signal)
    const [answers, until] = [Math.random() * ANSWERS, performance.now() + LATEST_MS]
    while (life.answered.size < answers && performance.now() < until) await pause(1)
    await pause(Math.random() * 10)
    kill()
    await work
  }
  await closed
  assert.equal(child.signalCode, 'SIGKILL', out)
  return life
}

/** Sends requests until the process is dead. */
async function load(place: Place, life: Life, out: string, signal: AbortSignal): Promise<void> {
  const url = /listens at (\S+)/.exec(out)?.[1] ?? assert.fail(out)
  const metrics = /"address":"([^"]+)"[^\n]*listening for probes/.exec(out)?.[1] ?? assert.fail(out)
  const ask = (path: string, method: string, headers: Record<string, string>, body?: object) =>
    fetch(url + path, {
      method,
      signal,
      headers: { ...headers, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  const query = async () => {
    const number = life.next++
    const sql = `SELECT i FROM n WHERE i = ${number}`
    const path = `/teams/${place.teamId}/datasources/${place.id}/query`
    const answer = await ask(path, 'POST', { authorization: `Bearer ${place.key}` }, { sql })
    const text = await answer.text()
    // On a busy machine, the store or the database may be too slow. These refusals do not count as answers.
    if (answer.status === 503 || answer.status === 504) return pause(50)
    assert.equal(answer.status, 200, text)
    life.answered.set(number, performance.now())
    await pause(2)
  }
  let changed = 0
  let jwt = ''
  const change = async () => {
    if (jwt === '') {
      const signedIn = await ask('/auth/token', 'GET', { cookie: place.cookie })
      const { token } = (await signedIn.json()) as { token: string }
      if (signedIn.status === 503) return pause(50)
      jwt = token
    }
    const name = `Team ${place.hasName}.${++changed}`
    life.asked.push(name)
    const answer = await ask(`/teams/${place.teamId}`, 'PATCH', { authorization: `Bearer ${jwt}` }, { name })
    const text = await answer.text()
    if (answer.status === 503) return pause(50)
    assert.equal(answer.status, 200, text)
    life.named.push(name)
    await pause(5)
  }
  const read = async () => {
    const sent = performance.now()
    const text = await (await fetch(`http://${metrics}/metrics`, { signal })).text()
    const waiting = /^vitrine_audit_waiting_seconds (\S+)$/m.exec(text)?.[1] ?? assert.fail(text)
    // The age is rounded to whole milliseconds, so subtract two.
    life.writtenBefore = Math.max(life.writtenBefore, sent - Number(waiting) * 1000 - 2)
    await pause(20)
  }
  const repeated = async (work: () => Promise<void>) => {
    for (;;) {
      try {
        await work()
      } catch (error) {
        if (signal.aborted) return
        throw error
      }
    }
  }
  await Promise.all([...Array.from({ length: CLIENTS }, () => repeated(query)), repeated(change), repeated(read)])
}

/** Counts how often each query from `from` on, and each name of the team, occurs in the audit. */
async function foundIn(store: Parameters<typeof newest>[0], teamId: TeamId, from: number) {
  const queries = new Map<number, number>()
  const names = new Map<string, number>()
  const count = <K>(map: Map<K, number>, key: K) => map.set(key, (map.get(key) ?? 0) + 1)
  for await (const rows of newest(store, teamId, {}, null)) {
    let isOld = false
    for (const row of rows) {
      const number = /WHERE i = (\d+)$/.exec(row.query ?? '')?.[1]
      if (number !== undefined && Number(number) < from) isOld = true
      else if (number !== undefined) count(queries, Number(number))
      if (row.action !== 'changeTeam') continue
      const name = /\bto\W+(Team \d+\.\d+)/.exec(JSON.stringify(row))?.[1]
      if (name !== undefined) count(names, name)
    }
    if (isOld) break
  }
  return { queries, names }
}
