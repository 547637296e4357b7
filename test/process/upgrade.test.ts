// Upgrades a used store of each earlier version, which must then work like a store of this version. test/stores has the
// stores as SQL for SQLite, each written by the code of its version (scripts/keep-store.ts). Each store has people, a
// team, a datasource with its password, an exposure, keys, queries and refusals. The first line has an API key of the
// owner.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { Kysely, sql } from 'kysely'
import { openSecrets } from '../../src/secrets.ts'
import { migrate, MIGRATIONS } from '../../src/store/migrate.ts'
import type { DialectName } from '../../src/store/migration.ts'
import { openStore, type Store } from '../../src/store/open.ts'
import { openPostgres } from '../../src/store/postgres.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import type { Tables } from '../../src/store/tables.ts'
import { copyRows } from '../../src/upkeep/copy-rows.ts'
import { startApp } from '../support/app.ts'
import { findingsOf } from '../support/audited.ts'
import { vitrine } from '../support/command.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import type { StoreConfig } from '../support/stores.ts'
import { UPGRADED_SECRET, UPGRADED_SHOP } from '../support/upgraded-shop.ts'

const STORES = fileURLToPath(new URL('../stores/', import.meta.url))
const VERSIONS = globSync('*.sql.gz', { cwd: STORES })
  .map((file) => basename(file, '.sql.gz'))
  .sort()

/** These versions have no store. Before the next migration is added, a store of the newest version must be added. */
const NOT_KEPT = ['0003-people', '0004-audit-chain', '0007-descriptions']

test('test/stores has a store of each version before the newest, except the versions that were not kept', () => {
  const names = MIGRATIONS.map(({ name }) => name)
  assert.deepEqual(
    names.slice(0, -1).filter((name) => !VERSIONS.includes(name)),
    NOT_KEPT,
  )
  assert.deepEqual(
    VERSIONS.filter((version) => !names.includes(version)),
    [],
  )
})

describe('an upgrade from each earlier version', () => {
  let root: string
  let server: TestPostgres
  const schemas = new Map<DialectName, unknown>()

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'vitrine-upgrade-'))
    server = await startPostgres()
    await server.createDatabase('shop', UPGRADED_SHOP)
    for (const dialect of ['sqlite', 'postgres'] as const) {
      await using fresh = await openStore(await emptyConfig(dialect, 'fresh'))
      schemas.set(dialect, await schemaOf(fresh))
    }
  })
  after(async () => {
    await server[Symbol.asyncDispose]()
    await rm(root, { recursive: true, force: true })
  })

  async function emptyConfig(dialect: DialectName, name: string): Promise<StoreConfig> {
    const dataDir = join(root, `${dialect}-${name}`)
    await mkdir(dataDir, { mode: 0o700 })
    const databaseUrl = dialect === 'sqlite' ? null : server.url(await server.createDatabase(`store ${name}`))
    return { dataDir, databaseUrl }
  }

  async function oldStore(dialect: DialectName, version: string) {
    const text = gunzipSync(readFileSync(join(STORES, `${version}.sql.gz`))).toString()
    const [, key = ''] = /^-- key: (\S+)\n/.exec(text) ?? assert.fail(version)
    const config = await emptyConfig(dialect, version)
    const names = readOld(text, config.dataDir)
    if (config.databaseUrl !== null) {
      const migrations = MIGRATIONS.filter(({ name }) => names.includes(name))
      const from = new Kysely<Tables>({ dialect: openSqlite(config.dataDir).dialect })
      const to = new Kysely<Tables>({ dialect: (await openPostgres(config.databaseUrl)).dialect })
      await migrate(to, dialect, migrations)
      await copyRows({ db: from, dialect: 'sqlite' }, { db: to, dialect })
      await Promise.all([from.destroy(), to.destroy()])
      await rm(join(config.dataDir, 'vitrine.db'))
    }
    return { config, key }
  }

  function readOld(text: string, dataDir: string): readonly unknown[] {
    using db = new DatabaseSync(join(dataDir, 'vitrine.db'))
    db.exec(text)
    // The datasource gets the port of this test's database. Keys must not expire, and the audit has the longest
    // retention, so that nothing has expired when the test runs.
    db.prepare('UPDATE datasources SET port = ?').run(server.port)
    db.exec('UPDATE api_keys SET expires_at = NULL')
    db.exec(`UPDATE teams SET settings = '{"auditRetentionDays":3650}'`)
    return db
      .prepare('SELECT name FROM migrations')
      .all()
      .map(({ name }) => name)
  }

  for (const dialect of ['sqlite', 'postgres'] as const) {
    for (const version of VERSIONS) {
      test(`after the upgrade from ${version} on ${dialect}, people, keys, secrets, exposure and audit are there, and queries are answered`, async () => {
        const { config, key } = await oldStore(dialect, version)
        const env = {
          VITRINE_DATA_DIR: config.dataDir,
          VITRINE_SECRET_KEY: UPGRADED_SECRET.toString('base64'),
          ...(config.databaseUrl !== null && { DATABASE_URL: config.databaseUrl }),
        }
        {
          await using app = await startApp({ env })
          const ada = await app.signIn('ada@example.test')
          const [team] = await ada.must('GET', '/teams')
          assert.deepEqual([team.name, team.role], ['Shop team', 'OWNER'])
          const members = await ada.must('GET', `/teams/${team.id}/members`)
          assert.match(
            JSON.stringify(members),
            /bo@example\.test.*cleo@example\.test|cleo@example\.test.*bo@example\.test/,
          )
          const keys = await ada.must('GET', '/users/me/keys')
          assert.deepEqual([keys.length, keys[0].name], [1, 'kept'], 'the revoked key is not back')

          const [datasource] = await app.must('GET', `/teams/${team.id}/datasources`, { token: key })
          const at = `/teams/${team.id}/datasources/${datasource.id}`
          const schema = await app.must('GET', `${at}/schema`, { token: key })
          assert.match(JSON.stringify(schema), /"status"/)
          assert.doesNotMatch(JSON.stringify(schema), /"email"|"total"/)
          const query = (statement: string) => app.ask('POST', `${at}/query`, { token: key, body: { sql: statement } })
          const counted = () => query('SELECT status, count(*) FROM orders GROUP BY status ORDER BY status')
          let answered = await counted()
          if (answered.json.code === 'SCHEMA_STALE') {
            // Older versions stored fewer facts about a database than the current guard needs
            // (docs/operating/upgrade.md).
            await ada.must('POST', `${at}/introspect`, {})
            answered = await counted()
          }
          assert.deepEqual(answered.json.rows ?? answered.text, [
            ['paid', 1],
            ['sent', 2],
          ])
          const refused = await query('SELECT email FROM customers')
          assert.deepEqual([refused.status, refused.json.blocked], [403, { kind: 'column', name: 'email' }])

          const { items } = await ada.must('GET', `/teams/${team.id}/audit?limit=100`)
          const of = (action: string) => items.filter((item: { action: string }) => item.action === action)
          assert.equal(of('putExposure').length, 1, 'the change of the old version')
          const codes = of('runQuery').map(({ code, outcome }: { code?: string; outcome: string }) => code ?? outcome)
          // The old version wrote three of these rows, and this version two.
          for (const [code, times] of [
            ['ANSWERED', 2],
            ['QUERY_DENIED', 2],
            ['INVALID_QUERY', 1],
          ] as const) {
            assert.equal(codes.filter((each: string) => each === code).length, times, `${code} of ${codes}`)
          }
        }
        await using store = await openStore(config)
        assert.deepEqual(await schemaOf(store), schemas.get(dialect))
        const auditKey = (await openSecrets({ secretKey: UPGRADED_SECRET, dataDir: config.dataDir })).derive(
          'audit chain',
        )
        assert.deepEqual(await findingsOf(store, auditKey), [])
      })
    }
  }

  for (const dialect of ['sqlite', 'postgres'] as const) {
    test(`a store of a newer version on ${dialect} is refused with a message of one line${dialect === 'sqlite' ? ', and does not change' : ''}`, async () => {
      const config = await emptyConfig(dialect, 'newer')
      {
        await using store = await openStore(config)
        await migrate(store.db, dialect, [...MIGRATIONS, { name: '9999-later', up: async () => undefined }])
      }
      const file = join(config.dataDir, 'vitrine.db')
      const kept = dialect === 'sqlite' ? await readFile(file) : null
      const env = {
        VITRINE_DATA_DIR: config.dataDir,
        VITRINE_SECRET_KEY: UPGRADED_SECRET.toString('base64'),
        ...(config.databaseUrl !== null && { DATABASE_URL: config.databaseUrl }),
      }
      for (const verb of ['serve', 'migrate'] as const) {
        const { code, err } = await vitrine([verb], env)
        assert.equal(code, 1)
        assert.match(err, /^The store was written by a newer version of Vitrine \(it has 9999-later\)\. [^\n]+\n$/)
      }
      if (kept !== null) assert.deepEqual(await readFile(file), kept)
    })
  }
})

/** Returns the schema, which does not depend on the order in which the tables were created. */
async function schemaOf({ db, dialect }: Store): Promise<readonly unknown[]> {
  const columns =
    dialect === 'sqlite'
      ? sql`
          select m.name as "table", c.name as "column", c.type, c."notnull", c.dflt_value, c.pk
          from sqlite_master m, pragma_table_info(m.name) c where m.type = 'table' order by m.name, c.name`
      : sql`
          select table_name as "table", column_name as "column", data_type, is_nullable, column_default
          from information_schema.columns where table_schema = 'public' order by table_name, column_name`
  const indexes =
    dialect === 'sqlite'
      ? sql`
          select m.name, m.tbl_name, group_concat(i.name) as columns
          from sqlite_master m, pragma_index_info(m.name) i where m.type = 'index' group by m.name order by m.name`
      : sql`select indexname, tablename, indexdef from pg_indexes where schemaname = 'public' order by indexname`
  return [...(await columns.execute(db)).rows, ...(await indexes.execute(db)).rows]
}
