// Sends the attacks and the legitimate queries over HTTP to a BigQuery double, which runs Google's own analyzer and
// evaluator. A refusal must be one JSON error. A query that runs must read nothing hidden. A legitimate query must
// return the same rows as if the hidden data had never existed.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { REACHED } from '../../engines/bigquery/evaluate-query.ts'
import type { Analyzed } from '../../engines/bigquery/engine.ts'
import { ZetasqlError } from '../../engines/bigquery/zetasql.ts'
import type { Answer } from '../../support/app.ts'
import { engineOrSkip } from '../../support/no-such-engine.ts'
import { expectedValue } from './expected-value.ts'
import { ATTACKS, FIXTURE, isHidden, LEGIT, type Item } from './sample-project.ts'
import { openStage, type Stage } from './stage.ts'

const HIDDEN_NAMES = ['ssn', 'margin', 'events_secret', 'customer_notes', 'salaries', 'employee']
const SECRET = new RegExp([...FIXTURE.sentinels, REACHED].join('|').replaceAll('.', '\\.'))

/** Returns what is wrong with the response to an attack. A refusal may repeat the caller's own words. */
function faults({ sql, expect }: Item, { status, text, json }: Answer): string[] {
  const wrong: string[] = []
  const answered = status === 200
  if (SECRET.test(answered ? text : text.replaceAll(JSON.stringify(sql).slice(1, -1), '')) && (answered || !SECRET.test(sql)))
    wrong.push('tells a secret')
  for (const name of HIDDEN_NAMES) {
    if (new RegExp(`\\b${name}\\b`, 'i').test(text) && !new RegExp(name, 'i').test(sql)) wrong.push(`names ${name}`)
  }
  if (answered && expect === 'deny') wrong.push('is answered')
  if (answered && !Array.isArray(json.rows)) wrong.push('has no rows')
  const refusals = ['400 INVALID_QUERY', '400 INVALID_REQUEST', '403 QUERY_DENIED', '413 BODY_TOO_LARGE', '422 QUERY_FAILED']
  if (!answered && !refusals.includes(`${status} ${json?.code}`)) wrong.push(`ends with ${status} ${json?.code}`)
  if (!answered && typeof json?.error !== 'string') wrong.push('has no error')
  return wrong
}

/** Returns the engine's result on tables without hidden data, or null if the engine is too old for the query. */
async function truth({ oracle }: Stage, sql: string): Promise<{ columns: Analyzed['columns']; rows: unknown[][] } | null> {
  try {
    const { columns } = await oracle.analyze(sql)
    const rows = await oracle.evaluate(sql)
    return { columns, rows: rows.map((row) => row.map((cell, n) => expectedValue(columns[n]?.type, cell))) }
  } catch (error) {
    if (error instanceof ZetasqlError) return null
    throw error
  }
}

function assertSame(answer: Answer, expected: { columns: Analyzed['columns']; rows: unknown[][] }): void {
  assert.equal(answer.status, 200, answer.text)
  const { columns, rows } = answer.json
  assert.deepEqual(columns.map((column: { name: string }) => column.name), expected.columns.map(({ name }) => name))
  const sorted = (all: unknown[][]): string[] => all.map((row) => JSON.stringify(row)).sort()
  assert.deepEqual(sorted(rows), sorted(expected.rows))
}

describe('the corpus over HTTP, with Google’s engine behind the double', () => {
  test('no attack reveals hidden data, and no accepted query reads it', async (t) => {
    const opened = await engineOrSkip(t, openStage)
    if (opened === null) return
    await using stage = opened
    for (const attack of ATTACKS) {
      await t.test(attack.id, async () => {
        const from = stage.brain.requests.length
        const answer = await stage.query(attack.sql)
        assert.deepEqual(faults(attack, answer), [], answer.text.slice(0, 300))
        const asked = stage.brain.requests.slice(from)
        assert.deepEqual(asked.flatMap(({ reads }) => reads.filter(isHidden)), [])
        assert.ok(!asked.some(({ unseen }) => unseen), 'BigQuery was sent a text that returns REACHED')
      })
    }
    assert.deepEqual(stage.double.violations, [])
    assert.equal((await stage.query('SELECT id FROM shop.customers')).json.rowCount, 3)
  })

  test('legitimate queries return the rows of a project that never had the hidden data', async (t) => {
    const opened = await engineOrSkip(t, openStage)
    if (opened === null) return
    await using stage = opened
    for (const { id, sql } of LEGIT) {
      await t.test(id, async () => {
        const expected = await truth(stage, sql)
        const answer = await stage.query(sql)
        if (expected !== null) return assertSame(answer, expected)
        // The engine of 2023 is too old for this query: the guard accepts it, and the engine fails.
        assert.match(`${answer.status} ${answer.json.code}`, /^(422 QUERY_FAILED|400 INVALID_QUERY)$/, answer.text)
        assert.ok(stage.brain.failed.includes(stage.double.requests.at(-1)?.body?.configuration?.query?.query), answer.text)
      })
    }
    await t.test('an error about a column that a star lacks says that a star has only the exposed columns', async () => {
      const sql = 'SELECT * FROM shop.customers UNION ALL SELECT 1, "a", "FR", "an ssn", STRUCT("b", "c")'
      const { status, json } = await stage.query(sql)
      assert.deepEqual([status, json.code], [422, 'QUERY_FAILED'])
      assert.match(json.error, /^Queries in UNION ALL have mismatched column count/)
      assert.match(json.hint, /^A star contains the exposed columns only/)
    })
    await t.test('a query may read an exposed view over a table that is not exposed', async () => {
      assert.deepEqual((await stage.query('SELECT * FROM shop.v_notes')).json.rows, [[1]])
    })
    assert.deepEqual(stage.double.violations, [])
    assert.doesNotMatch(await stage.describe(), new RegExp(`SECRET|${HIDDEN_NAMES.join('|')}`))
  })
})
