// Tests the driver with a real project, if BIGQUERY_LIVE_PROJECT and BIGQUERY_LIVE_KEY (a key file) are set. Creates a
// dataset and drops it again. Also reports what only the real BigQuery can show (docs/drivers/bigquery.md).
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { createBigQueryDriver } from '../../src/drivers/bigquery/driver.ts'
import { Pools } from '../../src/drivers/bigquery/session/socket-pools.ts'
import { ErrorResponse } from '../../src/drivers/bigquery/session/error-response.ts'
import { Rest } from '../../src/drivers/bigquery/session/rest.ts'
import { GOOGLE, targetOf } from '../../src/drivers/bigquery/session/settings.ts'
import { Tokens } from '../../src/drivers/bigquery/session/access-tokens.ts'
import type { Limits } from '../../src/drivers/driver.ts'
import { cut } from '../../src/exposure/cut-catalog.ts'

const PROJECT = process.env['BIGQUERY_LIVE_PROJECT']
const KEY = process.env['BIGQUERY_LIVE_KEY']
const LOCATION = process.env['BIGQUERY_LIVE_LOCATION'] ?? 'US'
const DATASET = `vitrine_live_${Date.now()}`
const LIMITS: Limits = { rowCap: 1000, maxResponseBytes: 1_000_000, timeoutMs: 60_000, maxCost: 1e9 }
const skip = (PROJECT === undefined || KEY === undefined) && 'BIGQUERY_LIVE_PROJECT and BIGQUERY_LIVE_KEY are not set'

// The test reads fields of real responses.
// oxlint-disable-next-line typescript/no-explicit-any
type Json = any

const MADE = [
  'CREATE SCHEMA D OPTIONS (location = "LOCATION", default_table_expiration_days = 1)',
  'CREATE TABLE D.t (x INT64 NOT NULL, y STRING, at TIMESTAMP) CLUSTER BY x AS SELECT 1, "CANARY", TIMESTAMP "1969-12-31 23:59:59.5"',
  'CREATE TABLE D.events_20240101 AS SELECT 1 AS x',
  'CREATE TABLE D.events_20240102 AS SELECT 2 AS x',
  'CREATE TABLE D.events_secret AS SELECT 3 AS x',
  'CREATE VIEW D.v AS SELECT x FROM D.t',
  'CREATE TABLE D.p (day DATE, x INT64) PARTITION BY day OPTIONS (require_partition_filter = TRUE)',
]

describe('a real project', { skip }, () => {
  const project = PROJECT ?? ''
  const report: string[] = []
  const pools = new Pools(null)
  const settings = {
    connectionMode: 'SERVICE_ACCOUNT',
    database: project,
    config: { location: LOCATION, datasets: [DATASET] },
    secrets: {} as Record<string, string>,
  }
  let rest: Rest
  const soon = () => AbortSignal.timeout(60_000)
  const named = (sql: string): string =>
    sql
      .replaceAll(/\bD\./g, `\`${project}\`.${DATASET}.`)
      .replaceAll(/\bSCHEMA D\b/g, `SCHEMA \`${project}\`.${DATASET}`)
      .replaceAll('LOCATION', LOCATION)
  const post = async (path: string, body: object): Promise<Json> =>
    await rest.json({ method: 'POST', path: ['projects', project, path], body }, soon())
  const raw = (sql: string, more: object = {}): Promise<Json> =>
    post('queries', { query: named(sql), useLegacySql: false, location: LOCATION, timeoutMs: 50_000, ...more })
  const dry = (sql: string): Promise<Json> =>
    post('jobs', {
      configuration: { dryRun: true, query: { query: named(sql), useLegacySql: false, useQueryCache: false } },
      jobReference: { projectId: project, location: LOCATION },
    })
  /** Adds a line to the report: BigQuery's answer or error. */
  const line = async (what: string, ask: () => Promise<unknown>): Promise<void> => {
    const answer = await ask().catch((error: unknown) =>
      error instanceof ErrorResponse ? `refused: ${error.message}` : Promise.reject(error),
    )
    report.push(`${what}: ${typeof answer === 'string' ? answer : JSON.stringify(answer)}`)
  }
  const tables = async (sql: string): Promise<Json> =>
    (await dry(sql)).statistics.query.referencedTables?.map((each: Json) => each.tableId)

  before(async () => {
    settings.secrets['serviceAccountKey'] = readFileSync(KEY ?? '', 'utf8')
    const { credentials } = targetOf(
      { applicationDefault: false, endpoint: false },
      { ...settings, host: null, port: null, username: null, sslMode: null },
    )
    const held = await pools.hold(GOOGLE, true)
    rest = new Rest(held.dispatcher, new Tokens(pools).sourceOf(credentials, true))
    for (const sql of MADE) await raw(sql)
  })
  after(async () => {
    await raw('DROP SCHEMA D CASCADE').catch((error: unknown) =>
      report.push(`the dataset is left behind: ${String(error)}`),
    )
    await pools[Symbol.asyncDispose]()
    console.log(['', `BigQuery, ${LOCATION}, ${new Date().toISOString()}`, ...report].join('\n'))
  })

  test('a real project is introspected, graded and queried', async () => {
    await using driver = await createBigQueryDriver()
    await using connection = await driver.connect(driver.settings(settings), { allowPrivateHosts: false }, soon())
    const catalog = await connection.introspect(soon())
    assert.deepEqual(catalog.tables.map(({ table }) => table).sort(), ['events_*', 'events_secret', 'p', 't', 'v'])
    const shown = [
      { schema: DATASET, table: 't', columns: ['x', 'at'] },
      { schema: DATASET, table: 'v', columns: ['x'] },
      { schema: DATASET, table: 'events_*', columns: ['x'] },
    ]
    const exposed = cut(catalog, shown)
    for (const step of (await connection.test(exposed, soon())).steps)
      report.push(`test, ${step.name}: ${step.status} ${step.message}`)
    const queries = [
      [`SELECT * FROM ${DATASET}.t`, '[[1,"1969-12-31T23:59:59.500000Z"]]'],
      [`SELECT * FROM ${DATASET}.v`, '[[1]]'],
      [`SELECT x, _TABLE_SUFFIX FROM \`${DATASET}.events_*\` ORDER BY x`, '[[1,"20240101"],[2,"20240102"]]'],
      [`SELECT TO_JSON_STRING(t) FROM ${DATASET}.t AS t`, null],
      [
        'SELECT 9007199254740993, NUMERIC "1.10", [STRUCT(1 AS a)], RANGE(DATE "2024-01-01", NULL)',
        '[["9007199254740993",1.1,[{"a":1}],"[2024-01-01, UNBOUNDED)"]]',
      ],
    ] as const
    for (const [sql, rows] of queries) {
      const verdict = await driver.confine(driver.read({ sql }), exposed, LIMITS, soon())
      assert.equal(verdict.kind, 'confined', JSON.stringify(verdict))
      if (verdict.kind !== 'confined') continue
      const answer = await connection.run(verdict.query, LIMITS, soon())
      assert.doesNotMatch(String(answer.rows), /CANARY/)
      if (rows !== null) assert.equal(String(answer.rows), rows)
    }
  })

  test('the report has facts that only BigQuery can show', async () => {
    const family = `(SELECT _t.x, _t._TABLE_SUFFIX AS s FROM \`${project}.${DATASET}.events_*\` AS _t)`
    await line('tables of a filtered wildcard', () => tables(`SELECT x FROM ${family} WHERE s = "20240101"`))
    await line('tables of a whole wildcard', () => tables(`SELECT x FROM ${family}`))
    for (const filter of ['TRUE', 's = "20240101"']) {
      await line(
        `bytes of the wildcard, ${filter}`,
        async () => (await dry(`SELECT x FROM ${family} WHERE ${filter}`)).statistics.totalBytesProcessed,
      )
    }
    for (const part of ['', ' TABLESAMPLE SYSTEM (1 PERCENT)']) {
      await line(
        `bytes of a table${part}`,
        async () => (await dry(`SELECT x FROM D.t${part}`)).statistics.totalBytesProcessed,
      )
    }
    await line('a partition filter outside of a sub-select', async () => {
      return (await dry('SELECT * FROM (SELECT day, x FROM D.p) WHERE day = "2024-01-01"')).status.state
    })
    await line('tables of a view', () => tables('SELECT * FROM D.v'))
    await line(
      'the destination of a dry run',
      async () => (await dry('SELECT * FROM D.t')).configuration.query.destinationTable ?? 'none',
    )
    await line('statistics of a dry run', async () => {
      const { schema: _, ...statistics } = (await dry('SELECT x FROM D.t WHERE x = 1')).statistics.query
      return statistics
    })
    await line(
      'the alias of a quoted path',
      async () => (await dry(`SELECT t.x FROM \`${project}.${DATASET}.t\``)).status.state,
    )
    await line('a table in other letters', () => tables('SELECT * FROM D.T'))
    await line('a result column _TABLE_X', async () => (await dry('SELECT 1 AS _TABLE_X')).status.state)
    await line('a result column _vt_suffix', async () => (await dry('SELECT 1 AS _vt_suffix')).status.state)
    await line('CREATE TABLE in a dry run', async () => (await dry('CREATE TABLE D.made (x INT64)')).statistics.query)
    await line('whether it made one', () => tables('SELECT * FROM D.made'))
    await line('a limit of bytes in a dry run', async () => {
      const query = { query: named('SELECT * FROM D.t'), useLegacySql: false, maximumBytesBilled: '1' }
      return (
        await post('jobs', {
          configuration: { dryRun: true, query },
          jobReference: { projectId: project, location: LOCATION },
        })
      ).status
    })
    await line('sent twice', async () => {
      const requestId = randomUUID()
      const [one, two] = [await raw('SELECT 1', { requestId }), await raw('SELECT 1', { requestId })]
      return one.jobReference.jobId === two.jobReference.jobId ? 'one job' : 'two jobs'
    })
    for (const sql of [
      'SELECT nope FROM D.t',
      'SELECT * FROM D.nope',
      'SELECT * FROM nope.nope',
      'SELECT FROM (',
      'SELECT t.nope FROM D.t AS t',
      'SELECT x = "a" FROM D.t',
    ]) {
      await line(`said of ${sql}`, async () => (await dry(sql)).status)
    }
    for (const sql of ['SELECT 1 / (x - 1) FROM D.t', 'SELECT CAST(y AS INT64) FROM D.t', 'SELECT ERROR(y) FROM D.t']) {
      await line(`said of ${sql}, run`, async () => (await raw(sql)).errors)
    }
    await line('another location', () =>
      raw('SELECT 1', { location: LOCATION === 'EU' ? 'US' : 'EU' }).then((answer) => answer.jobComplete),
    )
    assert.ok(report.length > 20)
  })
})
