// Runs the attacks against a real server, as a superuser who may read and write everything. If the guard allows a
// query, the answer may contain nothing hidden. A legitimate query must return what a role with column GRANTs gets.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { AppError } from '../../../src/errors.ts'
import type { Catalog, Connection, Driver, Limits, Rows } from '../../../src/drivers/driver.ts'
import { createPostgresDriver } from '../../../src/drivers/postgres/driver.ts'
import { formOf, isKnownSame } from '../../../src/drivers/postgres/guard/syntax/reparse-cache.ts'
import { parseText } from '../../../src/drivers/postgres/guard/syntax/parse-text.ts'
import { cut } from '../../../src/exposure/cut-catalog.ts'
import { startPostgres, type TestPostgres } from '../../support/postgres.ts'
import { openSession, settingsOf, type TestSession } from '../../support/postgres-session.ts'
import { ATTACKS, EXPOSURE, FIXTURE, LEGIT, ODD, STATE, failures, textOf, type Received } from './judge.ts'

const LIMITS: Limits = { rowCap: 1_000, maxResponseBytes: 8 << 20, timeoutMs: 60_000, maxCost: 1e12 }
/**
 * For attacks that may be answered, because some of them run for long. All other attacks must be refused or answered
 * within seconds, even on a busy machine.
 */
const SOON: Limits = { ...LIMITS, timeoutMs: 1_500 }
const signal = new AbortController().signal

let server: TestPostgres
let driver: Driver
let connection: Connection
let oracle: TestSession
let superuser: TestSession
let exposed: Catalog
/** The SQL that the guard printed for accepted queries. */
const printed = new Set<string>()
let stateBefore: (string | null)[][]

before(async () => {
  // The attacks create roles and read the server’s files, so they get their own server.
  server = await startPostgres({ settings: { autovacuum: 'off' } })
  await server.createDatabase('shop', FIXTURE)
  driver = await createPostgresDriver()
  connection = await connect()
  const everything = await connection.introspect(signal)
  exposed = cut(
    everything,
    EXPOSURE.tables.map((shown) => ({ ...shown, columns: shown.columns ?? all(everything, shown) })),
  )
  const login = { username: 'vitrine_oracle', secrets: { password: 'oracle-pw' } }
  oracle = await openSession(settingsOf(server, 'shop', login))
  superuser = await openSession(settingsOf(server, 'shop'))
  stateBefore = await server.query('shop', STATE)
})
after(async () => {
  await oracle[Symbol.asyncDispose]()
  await superuser[Symbol.asyncDispose]()
  await connection[Symbol.asyncDispose]()
  await driver[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
})

function connect(): Promise<Connection> {
  return driver.connect(settingsOf(server, 'shop'), { allowPrivateHosts: true }, signal)
}

function all(catalog: Catalog, shown: { readonly schema: string; readonly table: string }): string[] {
  const found = catalog.tables.find(({ schema, table }) => schema === shown.schema && table === shown.table)
  return (found?.columns ?? []).map((column) => column.name)
}

async function ask(sql: string, limits = LIMITS): Promise<Received & { readonly rows?: Rows }> {
  try {
    const body = driver.read({ sql })
    const verdict = await driver.confine(body, exposed, limits, signal)
    if (verdict.kind !== 'confined') return { outcome: verdict.kind, text: JSON.stringify(verdict) }
    printed.add(driver.printed(verdict.query))
    if (!connection.usable) connection = await connect()
    const rows = await connection.run(verdict.query, limits, signal)
    const text = JSON.stringify({ columns: rows.columns, rows: String(rows.rows) })
    return { outcome: 'answered', text, rowCount: rows.rowCount, rows }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    assert.notEqual(error.code, 'INTERNAL')
    const outcome = error.code === 'QUERY_TIMEOUT' ? 'timeout' : error.code === 'QUERY_DENIED' ? 'denied' : 'failed'
    return { outcome, text: `${error.message} ${JSON.stringify(error.extra)}` }
  }
}

/**
 * The guard remembers the shape of a query. This lets it learn the shape with harmless values, so that it only fills in
 * or binds the query’s own values afterwards.
 */
async function teach(sql: string): Promise<void> {
  const harmless = sql.replaceAll(/'[^']*'/g, "'a'").replaceAll(/(?<![\w.$])\d{1,9}(?![\w.])/g, '1')
  for (let times = 0; times < 2; times++) {
    try {
      await driver.confine(driver.read({ sql: harmless }), exposed, LIMITS, signal)
    } catch (error) {
      assert.ok(error instanceof AppError)
    }
  }
}

describe('an attack returns nothing hidden', () => {
  for (const attack of ATTACKS) {
    const sql = textOf(attack, { database: 'shop', port: 5432 })
    if (sql === undefined) continue
    test(`an attack returns nothing hidden: ${attack.id}`, async () => {
      const limits = attack.expect === 'no-leak' ? SOON : LIMITS
      assert.deepEqual(failures(attack, sql, await ask(sql, limits)), [])
      await teach(sql)
      assert.deepEqual(failures(attack, sql, await ask(sql, limits)), [], 'as a known shape')
    })
  }

  test('no attack has changed anything', async () => {
    assert.deepEqual(await server.query('shop', STATE), stateBefore)
  })
})

describe('a legitimate query gets the answer that a role with column GRANTs gets', () => {
  for (const { id, sql, oracle_sql, ordered } of LEGIT) {
    test(`a legitimate query gets the answer of a role with column GRANTs: ${id}`, async () => {
      const received = await ask(sql)
      assert.ok(received.rows, received.text)
      const expected = await oracle.run(oracle_sql ?? sql, { searchPath: ['public'] })
      assert.deepEqual(received.rows.columns, expected.columns)
      assert.deepEqual(sorted(String(received.rows.rows), ordered), sorted(String(expected.rows), ordered))
      await teach(sql)
      const again = await ask(sql)
      assert.deepEqual(again.rows?.columns, expected.columns)
      assert.deepEqual(sorted(String(again.rows?.rows), ordered), sorted(String(expected.rows), ordered))
    })
  }
})

describe('an odd query gets the same answer as without a guard', () => {
  for (const sql of ODD) {
    test(`an odd query gets the same answer as without a guard: ${sql}`, async () => {
      const received = await ask(sql)
      assert.ok(received.rows, received.text)
      const expected = await superuser.run(sql, { searchPath: ['public'] })
      const own = received.rows.columns.map((column) => column.name)
      assert.deepEqual(
        own,
        expected.columns.map((column) => column.name),
      )
      assert.deepEqual(sorted(received.rows.rows, false), sorted(expected.rows, false))
    })
  }
})

test('the guard does not parse a query whose form it knows, and parsing would give the same tree', () => {
  let [parses, seed] = [0, 20_261_122]
  const parse = (text: string) => (parses++, parseText(text))
  const next = (most: number): number => (seed = (seed * 48_271) % 2_147_483_647) % most
  /** Replaces names and numbers by others. */
  const varied = (text: string): string => {
    const form = formOf(text)
    const values = form?.tokens.map((token) => (/^\d+$/.test(token) ? String(1 + next(999_999_999)) : `${'nN_9'[next(4)]}${next(99)}`))
    return form?.key.split('\0').reduce((made, part, n) => made + (values?.[n - 1] ?? '') + part) ?? text
  }
  const known = (text: string): true | undefined => isKnownSame(parse, text, plainTree(text))
  let forms = 0
  for (const text of printed) {
    if (formOf(text) === null) continue
    known(text)
    if (known(text) === undefined) continue
    forms++
    parses = 0
    for (let times = 0; times < 3; times++) assert.equal(known(varied(text)), true, text)
    assert.equal(parses, 0)
  }
  assert.ok(forms > 100, `${forms} of ${printed.size} forms are known`)
})

/** Parses one SELECT, and removes the positions from its tree. */
function plainTree(text: string): object {
  const parsed = parseText(text)
  assert.ok(parsed.kind === 'tree', text)
  const isPlace = (key: string): boolean => /location$|^list_|_list_/.test(key)
  const json = JSON.stringify(parsed.tree, (key, value: unknown) => (isPlace(key) ? undefined : value))
  const { stmts } = JSON.parse(json) as { stmts: [{ stmt: { SelectStmt: object } }] }
  return stmts[0].stmt.SelectStmt
}

function sorted(rows: Rows['rows'], isOrdered: boolean): unknown[] {
  const list = (JSON.parse(String(rows)) as unknown[]).map((row) => JSON.stringify(row))
  return isOrdered ? list : list.toSorted()
}
