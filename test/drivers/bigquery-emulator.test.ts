// Tests the driver with an independent emulator (goccy/bigquery-emulator) at BIGQUERY_EMULATOR_URL. The emulator must
// accept the guard's printed SQL and the requests of the driver. It reports no referenced tables and no costs, and
// cannot cancel jobs.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createBigQueryDriver } from '../../src/drivers/bigquery/driver.ts'
import type { Catalog, Connection, Driver, Limits } from '../../src/drivers/driver.ts'
import { cut } from '../../src/exposure/cut-catalog.ts'

const url = process.env['BIGQUERY_EMULATOR_URL']?.replace(/\/$/, '')
const PROJECT = process.env['BIGQUERY_EMULATOR_PROJECT'] ?? 'vitrine-test'
const DATASET = `vitrine_${process.pid}`
const LIMITS: Limits = { rowCap: 1000, maxResponseBytes: 1_000_000, timeoutMs: 30_000, maxCost: 1e12 }

const QUERIES: readonly (readonly [string, string])[] = [
  ['SELECT id, name FROM D.products ORDER BY id', '[[1,"Tea"],[2,"Cup"]]'],
  ['SELECT COUNT(*) AS n, MAX(price) AS p FROM D.products', '[[2,2.5]]'],
  ['SELECT * FROM D.products WHERE id = 1', '[[1,"Tea",2.5]]'],
  ['WITH t AS (SELECT id FROM D.products) SELECT SUM(id) FROM t', '[[3]]'],
  ['SELECT p.name FROM D.products AS p JOIN D.products AS q ON p.id = q.id + 1', '[["Cup"]]'],
  ["SELECT [1, 2] AS a, STRUCT(1 AS x, 'y' AS y) AS s, CAST(NULL AS STRING) AS n", '[[[1,2],{"x":1,"y":"y"},null]]'],
  ['SELECT 9007199254740993 AS big', '[["9007199254740993"]]'],
]

describe(
  'an independent emulator',
  { skip: url === undefined && 'BIGQUERY_EMULATOR_URL is not set: no emulator to ask' },
  () => {
    let driver: Driver
    let connection: Connection
    let exposed: Catalog
    const soon = () => AbortSignal.timeout(60_000)
    const send = async (path: string, body: object): Promise<void> => {
      const headers = { 'content-type': 'application/json' }
      const answer = await fetch(`${url}/bigquery/v2/projects/${PROJECT}${path}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      })
      assert.ok(answer.ok, await answer.text())
    }
    before(async () => {
      const datasetReference = { projectId: PROJECT, datasetId: DATASET }
      await send('/datasets', { datasetReference })
      const fields = [
        { name: 'id', type: 'INTEGER', mode: 'REQUIRED' },
        { name: 'name', type: 'STRING' },
        { name: 'price', type: 'FLOAT' },
        { name: 'supplier_secret', type: 'STRING' },
      ]
      await send(`/datasets/${DATASET}/tables`, {
        tableReference: { ...datasetReference, tableId: 'products' },
        schema: { fields },
      })
      const rows = [
        { id: 1, name: 'Tea', price: 2.5, supplier_secret: 'CANARY' },
        { id: 2, name: 'Cup', price: 1.25, supplier_secret: 'CANARY' },
      ]
      await send(`/datasets/${DATASET}/tables/products/insertAll`, { rows: rows.map((json) => ({ json })) })
      driver = await createBigQueryDriver({ allowEndpoint: true })
      const config = { apiEndpoint: url, emulator: true, datasets: [DATASET] }
      const settings = driver.settings({ connectionMode: 'SERVICE_ACCOUNT', database: PROJECT, config, secrets: {} })
      connection = await driver.connect(settings, { allowPrivateHosts: true }, soon())
      exposed = cut(await connection.introspect(soon()), [
        { schema: DATASET, table: 'products', columns: ['id', 'name', 'price'] },
      ])
    })
    after(async () => {
      await connection[Symbol.asyncDispose]()
      await driver[Symbol.asyncDispose]()
    })

    for (const [sql, rows] of QUERIES) {
      test(`the emulator runs ${sql}`, async () => {
        const verdict = await driver.confine(
          driver.read({ sql: sql.replaceAll('D.', `${DATASET}.`) }),
          exposed,
          LIMITS,
          soon(),
        )
        assert.equal(verdict.kind, 'confined', JSON.stringify(verdict))
        if (verdict.kind !== 'confined') return
        assert.equal(String((await connection.run(verdict.query, LIMITS, soon())).rows), rows)
      })
    }

    test('the connection test passes with the emulator, and says that it is an emulator', async () => {
      const report = await connection.test(exposed, soon())
      assert.equal(report.ok, true)
      assert.match(report.serverVersion ?? '', /emulator/)
    })
  },
)
