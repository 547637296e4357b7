// While queries run, a PostgreSQL store is stopped or frozen, or its connections are killed. The process survives,
// callers get 503 STORE_UNAVAILABLE, and nothing that was answered is lost.
import assert from 'node:assert/strict'
import { mkdtemp } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { openSecrets } from '../../src/secrets.ts'
import { openStore } from '../../src/store/open.ts'
import type { Answer } from '../support/app.ts'
import { findingsOf } from '../support/audited.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { startService, type Service } from '../support/service.ts'

const SECRET = Buffer.alloc(32, 9)
const CLIENTS = 4
const PATIENCE_MS = 120_000

describe('a store that fails under load', { skip: !existsSync('/proc/self/stat') && 'there is no /proc' }, () => {
  let source: TestPostgres
  let spec: object
  before(async () => {
    source = await startPostgres()
    const database = await source.createDatabase('shop', 'CREATE TABLE n (i int); INSERT INTO n VALUES (1), (2)')
    const { host, port, superuser: username, password } = source
    spec = { host, port, database, username, password }
  })
  after(() => source[Symbol.asyncDispose]())

  /** Runs queries during `fault`, and until queries are answered again after it. Counts each kind of answer. */
  async function underLoad(fault: (store: TestPostgres, seen: Seen, app: Service) => Promise<void>): Promise<Seen> {
    await using store = await startPostgres()
    const databaseUrl = store.url(await store.createDatabase('store'))
    const dataDir = await mkdtemp(join(tmpdir(), 'vitrine-store-down-'))
    const seen = new Seen()
    {
      await using app = await startService(dataDir, {
        DATABASE_URL: databaseUrl,
        VITRINE_SECRET_KEY: SECRET.toString('base64'),
      })
      const owner = await app.person('Olga')
      const teamId = await app.team(owner)
      const id = await app.datasource(owner, teamId, spec, [{ schema: 'public', table: 'n', columns: null }])
      const token = await app.key(owner)
      const ask = () =>
        app.ask('POST', `/teams/${teamId}/datasources/${id}/query`, { token, body: { sql: 'SELECT i FROM n' } })
      const done = new AbortController()
      const clients = Array.from({ length: CLIENTS }, async () => {
        while (!done.signal.aborted) seen.add(await ask())
      })
      try {
        await seen.until('200')
        await fault(store, seen, app)
        await seen.until('200')
        await health(app, 200)
      } finally {
        done.abort()
        await Promise.all(clients)
      }
      app.signal('SIGTERM')
      assert.equal(await app.ended, 0)
    }
    await using opened = await openStore({ dataDir, databaseUrl })
    const { queries } = await opened.db
      .selectFrom('usage_days')
      .select(({ fn }) => fn.sum<string>('queries').as('queries'))
      .executeTakeFirstOrThrow()
    // The audit also has rows for refused queries.
    assert.ok(Number(queries) >= seen.count('200'), `${queries} rows for ${seen.count('200')} answers`)
    assert.deepEqual(
      await findingsOf(opened, (await openSecrets({ secretKey: SECRET, dataDir })).derive('audit chain')),
      [],
    )
    for (const kind of seen.kinds) assert.match(kind, /^(?:200|503 STORE_UNAVAILABLE|503 OVERLOADED)$/)
    return seen
  }

  const health = async (app: Service, status: number) => {
    const until = performance.now() + PATIENCE_MS
    for (;;) {
      const ready = await app.ask('GET', '/health/ready')
      if (ready.status === status) return ready
      assert.ok(performance.now() < until, `/health/ready still answers ${ready.status}`)
      await pause(20)
    }
  }

  test('while the store is stopped, queries get 503 with Retry-After, and after its start they are answered', async () => {
    await underLoad(async (store, seen, app) => {
      await store.stop()
      await seen.until('503 STORE_UNAVAILABLE')
      assert.equal((await health(app, 503)).json.code, 'STORE_UNAVAILABLE')
      assert.equal((await app.ask('GET', '/health/live')).status, 200)
      await store.restart()
    })
  })

  test('while the store is frozen, queries and probes get 503 instead of waiting, and afterwards they are answered', async () => {
    await underLoad(async (store, seen, app) => {
      const thaw = await store.freeze()
      try {
        await seen.until('503 STORE_UNAVAILABLE')
        assert.equal((await health(app, 503)).json.code, 'STORE_UNAVAILABLE')
      } finally {
        thaw()
      }
    })
  })

  test('if every connection to the store is killed, the process survives and connects again', async () => {
    await underLoad(async (store) => {
      for (let times = 0; times < 5; times++) {
        await store.query(
          'postgres',
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'vitrine'`,
        )
        await pause(50)
      }
    })
  })
})

class Seen {
  readonly #counts = new Map<string, number>()

  add({ status, json, headers }: Answer): void {
    const kind = status === 200 ? '200' : `${status} ${json?.code}`
    if (status === 503) assert.ok(Number(headers.get('retry-after')) >= 1)
    this.#counts.set(kind, this.count(kind) + 1)
  }

  get kinds(): readonly string[] {
    return [...this.#counts.keys()]
  }

  count(kind: string): number {
    return this.#counts.get(kind) ?? 0
  }

  async until(kind: string): Promise<void> {
    const [wanted, until] = [this.count(kind) + 10, performance.now() + PATIENCE_MS]
    while (this.count(kind) < wanted) {
      assert.ok(performance.now() < until, `no more ${kind}: ${JSON.stringify([...this.#counts])}`)
      await pause(10)
    }
  }
}
