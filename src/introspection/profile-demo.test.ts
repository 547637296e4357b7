// These tests compare the statistics in the demo shop's description with plain SQL queries on the same rows.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, describe, test } from 'node:test'
import { openRooms, type Rooms } from '../../test/support/connected.ts'
import { startPostgres, type TestPostgres } from '../../test/support/postgres.ts'
import { Profiled, withProfiles, type Shown, type Stats } from '../../test/support/profiled-datasource.ts'

interface DescribedTable {
  readonly table: string
  readonly columns: readonly {
    readonly name: string
    readonly type: string
    readonly primaryKey: boolean
    readonly references: object | null
    readonly stats: Stats | null
  }[]
}

describe('the profile of the demo shop', () => {
  let postgres: TestPostgres
  let rooms: Rooms
  let database: string
  let describedTables: readonly DescribedTable[]
  let stored: string
  before(async () => {
    postgres = await startPostgres()
    const seed = await readFile(new URL('../../demo/seed.sql', import.meta.url), 'utf8')
    database = await postgres.createDatabase('shop', `${seed}; ANALYZE;`)
    rooms = await openRooms()
    withProfiles(rooms)
    const { host, port, superuser: username, password } = postgres
    const { tables } = JSON.parse(await readFile(new URL('../../demo/exposure.json', import.meta.url), 'utf8')) as {
      tables: Shown[]
    }
    const at = await Profiled.connect(rooms, { host, port, database, username, password }, tables)
    const { skipped } = (await at.profile()) as { skipped: unknown[] }
    assert.deepEqual(skipped, [])
    describedTables = (JSON.parse((await at.described()).json.toString()) as { tables: DescribedTable[] }).tables
    stored = await at.stored()
  })
  after(async () => {
    await rooms[Symbol.asyncDispose]()
    await postgres[Symbol.asyncDispose]()
  })

  const plain = async (sql: string): Promise<readonly (string | null)[]> =>
    (await postgres.query(database, `SET timezone = 'UTC'; ${sql}`))[0] ?? []
  const cells = () =>
    describedTables.flatMap(({ table, columns }) =>
      columns.map((column) => ({ table, ...column, at: `${table}.${column.name}` })),
    )

  test('null shares in the description are off by less than 0.01, and distinct counts by less than 5 %', async () => {
    let compared = 0
    for (const { at, table, name, stats } of cells()) {
      assert.ok(stats, at)
      const [rows, nulls] = (await plain(`SELECT count(*), count(*) - count("${name}") FROM "${table}"`)).map(Number)
      assert.ok(Math.abs((stats.nullFrac ?? NaN) - (nulls ?? NaN) / (rows ?? NaN)) < 0.01, `${at} ${stats.nullFrac}`)
      if (stats.distinctCount === undefined) continue
      const [distinct] = (await plain(`SELECT count(DISTINCT "${name}") FROM "${table}"`)).map(Number)
      const off = Math.abs(stats.distinctCount - (distinct ?? NaN)) / Math.max(1, distinct ?? 0)
      assert.ok(off < 0.05, `${at}: ${stats.distinctCount} described, ${distinct} counted`)
      compared++
    }
    assert.ok(compared > 40, String(compared))
  })

  test('the description contains values with their shares, but no value of fewer than five rows', async () => {
    let compared = 0
    for (const { at, table, name, stats } of cells()) {
      for (const { value, share } of stats?.values ?? []) {
        // An enum label that no row has is listed without a share.
        if (share === undefined) continue
        const counted = `SELECT count(*) FILTER (WHERE "${name}"::text = '${String(value).replaceAll("'", "''")}'), count(*) FROM "${table}"`
        const [having = 0, rows = 0] = (await plain(counted)).map(Number)
        assert.ok(
          having >= 5 && Math.abs(share - having / rows) < 0.02,
          `${at} ${String(value)}: ${share} described, ${having} of ${rows}`,
        )
        compared++
      }
    }
    assert.ok(compared > 30, String(compared))
  })

  test('ranges in the description end at the minimum and maximum of the data', async () => {
    let compared = 0
    for (const { at, table, name, type, stats } of cells()) {
      if (stats?.range === undefined) continue
      const { range } = stats
      const [min, max] = await plain(`SELECT min("${name}"), max("${name}") FROM "${table}"`)
      const same = (a: unknown, b: unknown): boolean =>
        typeof a === 'number' || !Number.isNaN(Number(a))
          ? Number(a) === Number(b)
          : Math.abs(momentOf(String(a)) - momentOf(String(b))) < 1
      assert.ok(same(range.min, min) && same(range.max, max), `${at} ${type} ${JSON.stringify(range)} ${min} ${max}`)
      compared++
    }
    assert.ok(compared > 15, String(compared))
  })

  test('a profile stores nothing about hidden columns, and no values or ranges of personal columns', () => {
    for (const hidden of ['password_hash', 'purchase_price', 'iban', 'salary', 'card_last4', 'postal_code']) {
      assert.ok(!stored.includes(`"${hidden}"`), hidden)
    }
    for (const { at, stats } of cells().filter(({ name }) => name === 'full_name')) {
      assert.deepEqual([stats?.values, stats?.range], [undefined, undefined], at)
    }
    assert.doesNotMatch(stored, /@|Berg|Conti/)
  })
})

/** Parses a time from the description or from PostgreSQL, and returns milliseconds. */
function momentOf(text: string): number {
  const iso = text.replace(' ', 'T').replace(/\+00$/, 'Z')
  return Date.parse(/T/.test(iso) && !iso.endsWith('Z') ? `${iso}Z` : iso)
}
