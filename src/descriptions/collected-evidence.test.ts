import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AuditItem } from '../audit/reading/page.ts'
import type { Catalog } from '../drivers/driver.ts'
import { CollectedEvidence } from './collected-evidence.ts'

const plain = {
  nullable: true,
  primaryKey: false,
  references: null,
  description: null,
  unexposable: null,
  detail: null,
}
const columns = ['id', 'email', 'note'].map((name) => ({ name, type: 'text', ...plain }))
const about = { kind: 'table', description: null, estimatedRows: null, warnings: [], detail: null }
const catalog: Catalog = {
  capturedAt: '',
  capture: null,
  tables: [{ schema: 'public', table: 'customers', columns, ...about }],
}
const NOW = Date.parse('2026-03-10T12:00:00.000Z')
const HOUR_MS = 3_600_000
const CUSTOMERS = { schema: 'public', table: 'customers' }

let ids = 0
function refused(at: number, name = 'email', id = `r${++ids}`): AuditItem {
  const said = { query: 'SELECT email FROM customers', blocked: { kind: 'column', name } } as const
  return { ...base(at, id), outcome: 'DENIED', code: 'QUERY_DENIED', ...said }
}
function read(at: number, query: string): AuditItem {
  return { ...base(at, `a${++ids}`), outcome: 'ANSWERED', query, tables: [CUSTOMERS] }
}
function base(at: number, id: string) {
  const actor = { accountId: null }
  return { id, at: new Date(at).toISOString(), actor, via: 'API_KEY', action: 'runQuery' } as const
}
async function* of(...rows: readonly AuditItem[]): AsyncIterable<readonly AuditItem[]> {
  for (const row of rows) yield [row]
}

test('refused queries of seven days are counted by the hour, and several scans count each audit row only once', async () => {
  const collected = new CollectedEvidence(catalog, 1)
  const recent = refused(NOW - 1_000)
  await collected.refusals(NOW).take(of(recent, refused(NOW - 8 * HOUR_MS)))
  assert.equal(collected.evidence(NOW, true).of(CUSTOMERS)?.column('email').refusals, 2)
  const later = collected.refusals(NOW + 5_000)
  assert.equal(later.filter.from, new Date(NOW - 10_000).toISOString(), 'includes rows that other processes write late')
  await later.take(of(refused(NOW + 4_000), recent))
  const evidence = collected.evidence(NOW + 5_000, true)
  assert.equal(evidence.of(CUSTOMERS)?.column('email').refusals, 3)
  assert.equal(evidence.of(CUSTOMERS)?.refusals, 3)
  assert.equal(evidence.of(CUSTOMERS)?.column('id').refusals, 0)
  const afterAWeek = collected.evidence(NOW + 7 * 24 * HOUR_MS - 2 * HOUR_MS, true)
  assert.equal(afterAWeek.of(CUSTOMERS)?.refusals, 2, 'leaves out old hours')
  assert.notEqual(afterAWeek.stamp, evidence.stamp)
})

test('after a scan of the audit that stops early, the evidence starts at the oldest row that was read', async () => {
  const collected = new CollectedEvidence(catalog, 1)
  const cut = async function* () {
    yield* of(refused(NOW - 1_000), refused(NOW - HOUR_MS))
    throw new Error('too long')
  }
  await assert.rejects(collected.refusals(NOW).take(cut()))
  const evidence = collected.evidence(NOW, false)
  assert.equal(evidence.refusalsSince, new Date(NOW - HOUR_MS).toISOString())
  assert.equal(evidence.of(CUSTOMERS)?.refusals, 2)
  assert.equal(
    collected.refusals(NOW).filter.from,
    new Date(NOW - 10_000).toISOString(),
    'the next scan does not read the same period again',
  )
})

test('if a scan of the audit fails before its first row, the next scan reads everything', async () => {
  const collected = new CollectedEvidence(catalog, 1)
  const from = collected.refusals(NOW).filter.from
  const failed = async function* (): AsyncIterable<readonly AuditItem[]> {
    throw new Error('no audit')
  }
  await assert.rejects(collected.refusals(NOW).take(failed()))
  assert.equal(collected.evidence(NOW, true).refusalsSince, null)
  assert.equal(collected.refusals(NOW).filter.from, from)
})

test('the evidence says when a table, a named column, and all columns were last read', async () => {
  const collected = new CollectedEvidence(catalog, 1)
  const [first, second, third] = [NOW - 3 * HOUR_MS, NOW - 2 * HOUR_MS, NOW - HOUR_MS]
  await collected
    .reads(NOW)
    .take(
      of(
        read(third, 'SELECT count(*) FROM customers'),
        read(second, 'SELECT email FROM customers'),
        read(first, 'SELECT * FROM customers'),
      ),
    )
  const seen = collected.evidence(NOW, true).of(CUSTOMERS)
  const iso = (ms: number) => new Date(ms).toISOString()
  assert.equal(seen?.lastReadAt, iso(third))
  assert.equal(seen?.column('email').lastReadAt, iso(second))
  assert.equal(seen?.column('note').lastReadAt, iso(first))
})

test('a query that was refused for an unknown name, a function or its cost counts for no column', async () => {
  const collected = new CollectedEvidence(catalog, 1)
  const cost: AuditItem = { ...refused(NOW - 1), blocked: { kind: 'cost', name: '1' } }
  const routine: AuditItem = { ...refused(NOW - 3), blocked: { kind: 'function', name: 'email' } }
  await collected.refusals(NOW).take(of(refused(NOW - 2, 'no_such_column'), cost, routine))
  assert.equal(collected.evidence(NOW, true).of(CUSTOMERS), undefined)
})
