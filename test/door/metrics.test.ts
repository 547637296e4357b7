// Metrics have a separate address, and are served only if it is configured. They count by kind of database, operation
// and cause, and contain nothing about callers.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openShop } from '../support/shop.ts'
import { until } from '../support/until.ts'

test('answers, queries and refusals are counted, and shown only at VITRINE_METRICS_ADDR', async () => {
  let address = ''
  const logged = (line: string) => {
    const { msg, address: found } = JSON.parse(line)
    if (msg === 'listening for probes and collectors') address = found
  }
  await using shop = await openShop({ env: { VITRINE_METRICS_ADDR: '127.0.0.1:0' }, logged })
  const { app } = shop
  const read = async () => (await fetch(`http://${address}/metrics`)).text()
  /** `series` is a metric name with its labels. */
  const valueIn = (text: string, series: string) =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`${series} `))
        ?.slice(series.length + 1) ?? Number.NaN,
    )

  await app.ask('GET', '/users/me')
  await app.ask('GET', '/nowhere')
  // The first query takes the ordinary path through Fastify, and the second query takes the short path
  // (query-short-path.ts).
  assert.equal((await shop.query('SELECT id, name FROM customers WHERE id = 1')).status, 200)
  assert.equal((await shop.query('SELECT id, name FROM customers WHERE id < 4')).status, 200)
  assert.equal((await shop.query('SELECT email FROM customers')).status, 403)
  assert.equal((await shop.query('SELEC')).status, 400)
  assert.equal((await shop.query('SELECT 1 / (id - id) FROM customers')).status, 422)
  const answers = 'vitrine_answers_total{operation="runQuery",status="422"}'
  await until('the last answer is counted', async () => valueIn(await read(), answers) === 1)

  const text = await read()
  const kind = 'kind="POSTGRES"'
  const expected: Readonly<Record<string, number>> = {
    'vitrine_answers_total{operation="getAccount",status="401"}': 1,
    'vitrine_answers_total{operation="other",status="404"}': 1,
    'vitrine_answers_total{operation="runQuery",status="200"}': 2,
    'vitrine_refusals_total{code="UNAUTHENTICATED"}': 1,
    'vitrine_refusals_total{code="QUERY_DENIED"}': 1,
    'vitrine_answers_total{operation="getAccount",status="200"}': 1,
    'vitrine_answer_seconds_bucket{operation="getAccount",le="+Inf"}': 2,
    'vitrine_answer_seconds_count{operation="getAccount"}': 2,
    [`vitrine_queries_total{${kind},outcome="answered"}`]: 2,
    [`vitrine_queries_total{${kind},outcome="denied"}`]: 1,
    [`vitrine_queries_total{${kind},outcome="failed"}`]: 2,
    'vitrine_queries_total{kind="MONGODB",outcome="answered"}': 0,
    [`vitrine_query_refusals_total{${kind},code="QUERY_DENIED",blocked="column"}`]: 1,
    [`vitrine_query_refusals_total{${kind},code="INVALID_QUERY",blocked=""}`]: 1,
    [`vitrine_query_refusals_total{${kind},code="QUERY_FAILED",blocked=""}`]: 1,
    [`vitrine_query_rows_total{${kind}}`]: 4,
    [`vitrine_query_seconds_count{${kind}}`]: 5,
    [`vitrine_query_guard_seconds_count{${kind}}`]: 5,
    [`vitrine_query_database_seconds_count{${kind}}`]: 3,
    [`vitrine_pool_connections{${kind},state="used"}`]: 0,
    [`vitrine_pool_connections{${kind},state="idle"}`]: 1,
    [`vitrine_pool_waiting{${kind}}`]: 0,
    [`vitrine_pool_connect_failures_total{${kind}}`]: 0,
    vitrine_budget_spent_total: 5,
    vitrine_budget_exhausted_total: 0,
    vitrine_audit_writes: 1,
    vitrine_audit_write_failures_total: 0,
    vitrine_store_up: 1,
    vitrine_queries_running: 0,
  }
  for (const [series, value] of Object.entries(expected)) assert.equal(valueIn(text, series), value, series)
  for (const series of [
    `vitrine_query_seconds_sum{${kind}}`,
    `vitrine_pool_connect_seconds_count{${kind}}`,
    'vitrine_audit_rows_total',
    'vitrine_store_statement_seconds_count',
    'vitrine_store_transaction_seconds_count',
    'vitrine_connections',
    'vitrine_event_loop_delay_seconds',
    'process_resident_memory_bytes',
  ]) {
    assert.ok(valueIn(text, series) > 0, series)
  }
  assert.doesNotMatch(text, new RegExp(`${shop.teamId}|${shop.datasourceId}|${shop.owner.id}|email|Olga`))
  assert.equal((await app.ask('GET', '/metrics')).status, 404)
  assert.equal((await fetch(`http://${address}/`)).status, 404)
})
