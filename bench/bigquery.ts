// node bench/bigquery.ts: measures how long the guard takes for queries as analysts write them, which requests are sent
// to BigQuery for each query after the first, and how much memory queries add to the service. A test double stands in
// for BigQuery, and returns one row. Linux only.
import { Pool } from 'undici'
import type { Catalog, Limits } from '../src/drivers/driver.ts'
import { confine } from '../src/drivers/bigquery/guard/confine.ts'
import { startBigQuery } from '../test/support/bigquery.ts'
import { catalogOf } from '../test/attacks/bigquery/catalog.ts'
import { memory } from './cpu-time.ts'
import { median } from './load.ts'
import { connectTo, startVitrine } from './world.ts'

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 200)
const LIMITS: Limits = { rowCap: 1000, maxResponseBytes: 8 << 20, timeoutMs: 15_000, maxCost: 1 << 30 }
const PROJECT = 'vitrine-bench'

/** A star schema of a shop: fact tables of 23 columns, dimension tables of 28 columns. */
const FACTS = [
  'store_sales',
  'store_returns',
  'web_sales',
  'web_returns',
  'catalog_sales',
  'catalog_returns',
  'inventory',
]
const DIMENSIONS = [
  'dates',
  'items',
  'customers',
  'addresses',
  'stores',
  'sites',
  'promotions',
  'households',
  'warehouses',
]
const KEYS = ['date_id', 'item_id', 'customer_id', 'store_id', 'promotion_id', 'address_id']
const MEASURES = ['quantity', 'list_price', 'sales_price', 'net_paid', 'net_profit', 'discount', 'tax']

const columns = (names: readonly string[], type: string) => names.map((name) => ({ name, type }))
const more = (count: number) => Array.from({ length: count }, (_, n) => ({ name: `attribute_${n}`, type: 'STRING' }))
const fact = [...columns(KEYS, 'INT64'), ...columns(MEASURES, 'NUMERIC'), ...more(10)]
const dimension = [
  ...columns([...KEYS, 'year', 'month', 'day_of_week'], 'INT64'),
  ...columns(['name', 'category', 'brand', 'state', 'country', 'birth'], 'STRING'),
  ...more(13),
]
const TABLES = Object.fromEntries([
  ...FACTS.map((name) => [`${PROJECT}.ds.${name}`, { columns: fact, rows: [] }] as const),
  ...DIMENSIONS.map((name) => [`${PROJECT}.ds.${name}`, { columns: dimension, rows: [] }] as const),
])

/** Queries in the style of TPC-DS. */
const QUERIES: readonly string[] = [
  `WITH returned AS (SELECT r.customer_id, r.store_id, SUM(r.net_paid) AS total FROM ds.store_returns r, ds.dates d
   WHERE r.date_id = d.date_id AND d.year = 2000 GROUP BY r.customer_id, r.store_id)
   SELECT c.name FROM returned a, ds.stores s, ds.customers c WHERE a.total > (SELECT AVG(total) * 1.2 FROM returned b
   WHERE a.store_id = b.store_id) AND s.store_id = a.store_id AND s.state = 'TN' AND a.customer_id = c.customer_id
   ORDER BY c.name LIMIT 100`,
  `WITH weekly AS (${['web', 'catalog', 'store'].map((channel) => `SELECT date_id, net_paid FROM ds.${channel}_sales`).join(' UNION ALL ')}),
   days AS (SELECT d.year, d.month, ${[1, 2, 3, 4, 5, 6, 7].map((day) => `SUM(IF(d.day_of_week = ${day}, w.net_paid, NULL)) AS day_${day}`).join(', ')}
   FROM weekly w JOIN ds.dates d USING (date_id) GROUP BY d.year, d.month)
   SELECT a.month, ${[1, 2, 3, 4, 5, 6, 7].map((day) => `ROUND(SAFE_DIVIDE(a.day_${day}, b.day_${day}), 2) AS change_${day}`).join(', ')}
   FROM days a JOIN days b ON a.month = b.month AND a.year = b.year - 1 ORDER BY a.month`,
  `SELECT i.category, i.brand, s.name, d.year, d.month, SUM(f.sales_price) AS sales, AVG(SUM(f.sales_price)) OVER (PARTITION BY
   i.category, i.brand, s.name, d.year) AS monthly, RANK() OVER (PARTITION BY i.category ORDER BY SUM(f.sales_price) DESC) AS place
   FROM ds.store_sales AS f JOIN ds.items AS i ON f.item_id = i.item_id JOIN ds.dates AS d ON f.date_id = d.date_id
   JOIN ds.stores AS s ON f.store_id = s.store_id WHERE (d.year = 1999 OR (d.year = 1998 AND d.month = 12))
   GROUP BY 1, 2, 3, 4, 5 QUALIFY place <= 10 ORDER BY sales - monthly, s.name LIMIT 100`,
  `WITH ssr AS (SELECT s.name AS id, SUM(x.price) AS sales, SUM(x.profit) AS profit FROM (SELECT store_id, date_id, sales_price AS price,
   net_profit AS profit FROM \`ds.store_sales\` UNION ALL SELECT store_id, date_id, -net_paid, -discount FROM \`ds.store_returns\`) AS x
   INNER JOIN ds.stores AS s USING (store_id) INNER JOIN ds.dates AS d USING (date_id) WHERE d.year BETWEEN 1999 AND 2001 GROUP BY 1),
   csr AS (SELECT CAST(customer_id AS STRING) AS id, SUM(net_paid) AS sales, SUM(net_profit) AS profit FROM ds.catalog_sales GROUP BY 1)
   SELECT channel, id, SUM(sales) AS sales, SUM(profit) AS profit FROM (SELECT 'store' AS channel, * FROM ssr UNION ALL
   SELECT 'catalog', * FROM csr) GROUP BY ROLLUP (channel, id) ORDER BY channel, id LIMIT 100`,
  `SELECT c.* EXCEPT (birth), a.state FROM ds.customers c LEFT JOIN ds.addresses a ON a.address_id = c.address_id WHERE EXISTS
   (SELECT * FROM ds.store_sales s, ds.dates d WHERE c.customer_id = s.customer_id AND s.date_id = d.date_id AND d.year = 2002)
   AND (EXISTS (SELECT 1 FROM ds.web_sales w JOIN ds.dates USING (date_id) WHERE w.customer_id = c.customer_id)
   OR NOT EXISTS (SELECT 1 FROM ds.catalog_sales k WHERE k.customer_id = c.customer_id)) AND c.name NOT IN ('a', 'b', "c")`,
  `SELECT CASE ${Array.from({ length: 40 }, (_, n) => `WHEN quantity BETWEEN ${n * 20 + 1} AND ${n * 20 + 20} THEN (SELECT IF(COUNT(*) > ${n * 1000}, AVG(net_paid), AVG(net_profit)) FROM ds.store_sales WHERE quantity BETWEEN ${n * 20 + 1} AND ${n * 20 + 20})`).join(' ')} END AS bucket FROM ds.store_sales`,
]

async function guardTimes(catalog: Catalog): Promise<void> {
  const p50 = QUERIES.map((text) => {
    const took: number[] = []
    for (let round = 0; round < ROUNDS + 20; round++) {
      const began = performance.now()
      const verdict = confine({ text, limit: null }, catalog, LIMITS)
      if (round >= 20) took.push(performance.now() - began)
      if (verdict.kind !== 'confined') throw new Error(`${JSON.stringify(verdict)} ${text}`)
    }
    return median(took)
  })
  const mean = p50.reduce((sum, each) => sum + each, 0) / p50.length
  const length = Math.round(QUERIES.join('').length / QUERIES.length)
  console.log(
    `guard: ${mean.toFixed(2)} ms a query of ${length} characters on average (goal <= 2), ${Math.max(...p50).toFixed(2)} the slowest`,
  )
}

const world = { project: PROJECT, location: 'EU', tables: TABLES }
await guardTimes(catalogOf(world, (name) => TABLES[name]?.columns.map((column) => column.name) ?? null))

const schema = { fields: [{ name: 'n', type: 'INTEGER', mode: 'NULLABLE' as const }] }
const dryRun = { statementType: 'SELECT', totalBytesProcessed: '0', totalBytesProcessedAccuracy: 'PRECISE', schema }
const wireFields = fact.map(({ name, type }) => ({ name, type: type === 'INT64' ? 'INTEGER' : type }))
await using double = await startBigQuery({
  project: PROJECT,
  location: 'EU',
  datasets: { ds: { tables: { store_sales: { schema: { fields: wireFields }, numRows: '1' } } } },
  brain: {
    analyze: async () => ({ statistics: dryRun }),
    evaluate: async () => ({ schema, rows: [['1']] }),
  },
})
process.env['VITRINE_ALLOW_BIGQUERY_ENDPOINT'] = '1'
await using stack = new AsyncDisposableStack()
const vitrine = await startVitrine(stack)
const before = await memory(vitrine.pid)
const config = { apiEndpoint: double.url, location: 'EU', datasets: ['ds'] }
const spec = { type: 'BIGQUERY', connectionMode: 'SERVICE_ACCOUNT', sslMode: undefined, database: PROJECT, config }
const { at, key } = await connectTo(vitrine.base, spec, [{ schema: 'ds', table: 'store_sales', columns: null }])
const pool = new Pool(vitrine.base, { connections: 1 })
stack.defer(() => pool.close())
const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
const took: number[] = []
const ask = async (turn: number): Promise<void> => {
  const body = JSON.stringify({ sql: `SELECT COUNT(*) AS n FROM ds.store_sales WHERE quantity > ${turn}` })
  const began = performance.now()
  const answer = await pool.request({ method: 'POST', path: `${new URL(at).pathname}/query`, headers, body })
  const text = await answer.body.text()
  if (answer.statusCode !== 200) throw new Error(text)
  took.push(performance.now() - began)
}
await ask(-1)
const asked = double.requests.length
for (let turn = 0; turn < ROUNDS; turn++) await ask(turn)
const after = await memory(vitrine.pid)
if (double.violations.length > 0) throw new Error(double.violations.join('\n'))
console.log(
  `a warm query: ${((double.requests.length - asked) / ROUNDS).toFixed(2)} requests to BigQuery (goal <= 2), p50 ${median(took).toFixed(2)} ms over HTTP`,
)
console.log(
  `resident ${before.now.toFixed(0)} MB without a datasource, ${after.now.toFixed(0)} MB after ${ROUNDS} queries (adds ${(after.now - before.now).toFixed(0)}, goal <= 60)`,
)
