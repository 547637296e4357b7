// `npm run -s keep-store` writes the contents of a store of this version to test/stores, for the tests of later
// versions. Run it at each release, and before you add a migration. It performs the actions whose results the upgrade
// test checks (test/process/upgrade.test.ts).
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { MIGRATIONS } from '../src/store/migrate.ts'
import { startApp } from '../test/support/app.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { UPGRADED_SECRET, UPGRADED_SHOP } from '../test/support/upgraded-shop.ts'

const STORES = fileURLToPath(new URL('../test/stores/', import.meta.url))

const dataDir = await mkdtemp(join(tmpdir(), 'vitrine-keep-'))
try {
  const key = await fill(dataDir)
  const name = MIGRATIONS.at(-1)?.name ?? ''
  using db = new DatabaseSync(join(dataDir, 'vitrine.db'))
  await writeFile(join(STORES, `${name}.sql.gz`), gzipSync(`-- key: ${key}\n${textOf(db)}`, { level: 9 }))
  process.stdout.write(`test/stores/${name}.sql.gz\n`)
} finally {
  await rm(dataDir, { recursive: true })
}

/** Fills a new store. Returns an API key of the store. */
async function fill(folder: string): Promise<string> {
  await using server = await startPostgres()
  const database = await server.createDatabase('shop', UPGRADED_SHOP)
  const env = { VITRINE_DATA_DIR: folder, VITRINE_SECRET_KEY: UPGRADED_SECRET.toString('base64') }
  await using app = await startApp({ env })
  const ada = await app.person('Ada', 'ada@example.test')
  const bo = await app.person('Bo', 'bo@example.test')
  const { id: teamId } = await ada.must('POST', '/teams', { name: 'Shop team' })
  await app.join(ada, teamId, bo)
  await ada.must('POST', `/teams/${teamId}/members`, { email: 'cleo@example.test', role: 'MEMBER' })
  const login = { host: server.host, port: server.port, database, username: 'reader', password: 'reader-pw' }
  const at = `/teams/${teamId}/datasources/${await app.datasource(ada, teamId, login, [
    { schema: 'public', table: 'customers', columns: ['id', 'city'] },
    { schema: 'public', table: 'orders', columns: ['id', 'status'] },
  ])}`
  const key = await app.key(ada, { name: 'kept' })
  const { id } = await ada.must('POST', '/users/me/keys', { name: 'ended', scopes: ['profile'] })
  await ada.must('DELETE', `/users/me/keys/${id}`)
  for (const sql of ['SELECT status, count(*) FROM orders GROUP BY status', 'SELECT email FROM customers', 'SELEC 1']) {
    await app.ask('POST', `${at}/query`, { token: key, body: { sql } })
  }
  return key
}

/** Returns SQL statements that create a copy of the database. */
function textOf(db: DatabaseSync): string {
  const made = `SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid`
  const objects = db.prepare(made).all()
  const tables = objects.filter(({ type }) => type === 'table')
  const rows = tables.flatMap(({ name }) =>
    db
      .prepare(`SELECT * FROM "${String(name)}"`)
      .all()
      .map(
        (row) => `INSERT INTO "${String(name)}" (${names(row)}) VALUES (${Object.values(row).map(literal).join(', ')})`,
      ),
  )
  const others = objects.filter(({ type }) => type !== 'table')
  return [
    'PRAGMA foreign_keys = off',
    'BEGIN',
    ...tables.map(({ sql }) => sql),
    ...rows,
    ...others.map(({ sql }) => sql),
    'COMMIT',
  ]
    .map((statement) => `${String(statement)};\n`)
    .join('')
}

function names(row: object): string {
  return Object.keys(row)
    .map((name) => `"${name}"`)
    .join(', ')
}

function literal(value: unknown): string {
  if (value === null) return 'NULL'
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`
  return value instanceof Uint8Array ? `x'${Buffer.from(value).toString('hex')}'` : String(value)
}
