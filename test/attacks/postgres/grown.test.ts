// Judges random deep, wide and repeated queries at one size and at twice that size. The guard's work may grow at most
// 1.25 times as much as the query, and must end at its budget. No query may break the parser or overflow the stack.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadModule } from 'libpg-query'
import { HERE, IN_THREAD, judge } from '../../../src/drivers/postgres/guard/judge.ts'
import { parseText } from '../../../src/drivers/postgres/guard/syntax/parse-text.ts'
import { shop } from '../../support/postgres-catalog.ts'

const CASES = Number(process.env['GROW'] ?? 400)
const SEED = Number(process.env['SEED'] ?? 23)
const TEXT_MAX = 65_536
/** The part of the work that does not depend on the query. */
const CONSTANT = 500

/** Makes a generator of numbers. The same seed gives the same numbers (mulberry32). */
function chance(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

type Grow = (size: number) => string
const list = (size: number, each: (n: number) => string, between: string): string =>
  Array.from({ length: Math.max(1, size) }, (_, n) => each(n)).join(between)
const nest = (size: number, inner: string, around: (inner: string) => string): string =>
  Array.from({ length: size }).reduce<string>((text) => around(text), inner)

const ATOMS = ['1', "'x'", 'id', 'name', 'o.id', 'NULL', 'lower(name)', "repeat(name, 2)", 'count(*) OVER ()', "E'a''b'"]

/** Each expression repeats `atom` in another way. */
const EXPRESSIONS: readonly ((atom: string) => Grow)[] = [
  (atom) => (size) => list(size, () => `(${atom}) IS NULL`, ' AND '),
  (atom) => (size) => list(size, () => `(${atom})::text`, ' || '),
  (atom) => (size) => `CASE ${list(size, (n) => `WHEN id = ${n} THEN (${atom})::text`, ' ')} END`,
  (atom) => (size) => `coalesce(${list(size, () => `(${atom})::text`, ', ')})`,
  (atom) => (size) => `id IN (${list(size, String, ', ')}) AND (${atom}) IS NULL`,
  (atom) => (size) => `ARRAY[${list(size, () => `(${atom})::text`, ', ')}]`,
  (atom) => (size) => nest(Math.min(size, 150), `(${atom})::text`, (inner) => `lower(${inner})`),
  (atom) => (size) => nest(Math.min(size, 150), `(${atom}) IS NULL`, (inner) => `NOT (${inner})`),
  (atom) => (size) => nest(Math.min(size, 100), `(${atom})::text`, (inner) => `CASE WHEN id = 1 THEN ${inner} END`),
  (atom) => (size) => `(${atom})::text /*${'c'.repeat(size)}*/ ${'/**/'.repeat(size)}`,
  (atom) => (size) => `json_build_object(${list(Math.min(size, 40), (n) => `'k${n}', (${atom})::text`, ', ')})`,
]

const QUERIES: readonly ((expression: Grow) => Grow)[] = [
  (expression) => (size) => `SELECT ${expression(size)} FROM orders o JOIN customers USING (id)`,
  (expression) => (size) => `SELECT 1 FROM orders o JOIN customers USING (id) WHERE (${expression(size)}) IS NOT NULL`,
  (expression) => (size) => list(Math.min(size, 300), () => `SELECT (${expression(1)})::text FROM orders o JOIN customers USING (id)`, ' UNION ALL '),
  (expression) => (size) => `SELECT ${list(Math.min(size, 1_000), (n) => `(${expression(1)}) AS c${n}`, ', ')} FROM orders o JOIN customers USING (id)`,
  (expression) => (size) => `WITH ${list(Math.min(size, 90), (n) => `q${n} AS (SELECT (${expression(1)})::text AS a FROM orders o JOIN customers USING (id))`, ', ')} SELECT * FROM q0`,
  (expression) => (size) => nest(Math.min(size, 25), `SELECT (${expression(size)})::text AS a FROM orders o JOIN customers USING (id)`, (inner) => `SELECT a FROM (${inner}) q`),
  (expression) => (size) => `SELECT (${expression(1)})::text FROM orders o JOIN customers USING (id) ORDER BY ${list(size, () => '1', ', ')}`,
]

/** Each join of a chain sees all tables before it. The guard must not copy them for each join. */
const JOINS: readonly Grow[] = [
  (size) => `SELECT 1 FROM orders a0 ${list(Math.min(size, 450), (n) => `JOIN orders a${n + 1} USING (id)`, ' ')}`,
  (size) => `SELECT a0.id FROM orders a0 ${list(Math.min(size, 450), (n) => `JOIN orders a${n + 1} ON a${n + 1}.id = a${n}.id`, ' ')}`,
  (size) => `SELECT * FROM orders a0 ${list(Math.min(size, 450), (n) => `NATURAL JOIN orders a${n + 1}`, ' ')}`,
  (size) => `SELECT 1 FROM ${list(Math.min(size, 450), (n) => `orders a${n}`, ', ')}`,
  (size) => `SELECT 1 FROM orders o ${list(Math.min(size, 300), (n) => `CROSS JOIN LATERAL (SELECT o.id AS x${n}) l${n}`, ' ')}`,
  (size) => `WITH c AS (SELECT * FROM orders) SELECT 1 FROM ${list(Math.min(size, 450), (n) => `c a${n}`, ' CROSS JOIN ')}`,
  (size) => `SELECT 1 FROM orders a0, customers WHERE ${list(size, () => 'name IS NULL', ' AND ')}`,
]

/**
 * In these queries, each level multiplies the columns or the printed SQL. The budget ends this work, so its growth is
 * not measured.
 */
const MULTIPLYING: readonly Grow[] = [
  (size) => nest(Math.min(size, 60), 'SELECT * FROM orders', (inner) => `SELECT a.*, a.* FROM (${inner}) a`),
  (size) => `SELECT * FROM orders a0 ${list(size, (n) => `JOIN orders a${n + 1} USING (id)`, ' ')}`,
  (size) => `WITH c0 AS (SELECT * FROM orders), ${list(Math.min(size, 90), (n) => `c${n + 1} AS (SELECT a.*, b.* FROM c${n} a, c${n} b)`, ', ')} SELECT 1 FROM c1`,
  (size) => `SELECT ${list(size, () => 'o', ', ')} FROM orders o`,
  (size) => `SELECT ROW(${list(size, () => 'o.*', ', ')}) FROM orders o`,
  // The guard prints the argument of each level several times.
  ...[
    (inner: string) => `split_part(${inner}, name, 1)`,
    (inner: string) => `normalize(${inner})`,
    (inner: string) => `repeat(${inner}, id)`,
    (inner: string) => `(name LIKE ${inner})::text`,
    (inner: string) => `jsonb_path_query_first(to_jsonb(${inner}), '$[*] ? (@ == $[*])')::text`,
    (inner: string) => `(SELECT string_agg(name, ${inner}) FROM customers)`,
  ].map((around): Grow => (size) => `SELECT ${nest(Math.min(size, 55), 'name', around)} FROM customers`),
]

test('work grows in proportion to the text, and ends at the budget', async () => {
  await loadModule()
  const catalog = shop()
  const roll = chance(SEED)
  const pick = <T>(of: readonly T[]): T => of[roll(of.length)] ?? assert.fail()
  const tally = { grown: 0, made: 0, denied: 0, malformed: 0, worst: 0, steepest: 0 }

  const spentOn = (text: string): { readonly kind: string; readonly spent: number } => {
    let [spent, printed] = [0, 0]
    const meter = (units: number, nodes: number): void => void ([spent, printed] = [units, nodes])
    const bounds = { ...IN_THREAD, meter }
    const verdict = judge(parseText, { text, catalog, rowCap: 1_000, params: [] }, bounds)
    assert.ok(verdict.kind === 'made' || verdict.kind === 'denied' || verdict.kind === 'malformed', `${verdict.kind}: ${text.slice(0, 500)}`)
    assert.ok(!('defect' in verdict) || verdict.defect === undefined, `${'defect' in verdict ? verdict.defect : ''}: ${text.slice(0, 500)}`)
    // The guard may count one more step before it compares with the budget.
    assert.ok(spent <= IN_THREAD.work + 2_000, `${spent}: ${text.slice(0, 500)}`)
    // One level prints its argument fewer than eight times.
    assert.ok(printed <= 8 * IN_THREAD.nodes, `${printed}: ${text.slice(0, 500)}`)
    tally[verdict.kind]++
    tally.worst = Math.max(tally.worst, spent)
    return { kind: verdict.kind, spent }
  }

  for (let n = 0; n < CASES; n++) {
    const family = roll(10)
    const multiplies = family === 0
    const grow = multiplies ? pick(MULTIPLYING) : family === 1 ? pick(JOINS) : pick(QUERIES)(pick(EXPRESSIONS)(pick(ATOMS)))
    const size = 1 + roll(roll(10) === 0 ? 2_000 : 60)
    const [small, large] = [grow(size), grow(2 * size)]
    if (large.length > TEXT_MAX) continue
    tally.grown++
    const [before, after] = [spentOn(small), spentOn(large)]
    if (multiplies || before.kind !== 'made' || after.kind !== 'made') continue
    // The repeated part may itself contain a part that grows. So compare with the growth of the query's length.
    const times = Math.max(2, large.length / small.length)
    tally.steepest = Math.max(tally.steepest, (after.spent - CONSTANT) / before.spent / (times / 2))
    assert.ok(after.spent <= 1.25 * times * before.spent + CONSTANT, `${before.spent} → ${after.spent}: ${small.slice(0, 500)}`)
  }
  process.stdout.write(`${JSON.stringify(tally)}\n`)
  assert.ok(tally.made > tally.grown / 2)
})

test('the main thread confines a long query only once, even if it needs lower limits', async () => {
  await loadModule()
  const passes = (pairs: number): readonly [string, number] => {
    let count = 0
    const text = `SELECT ${list(pairs, () => "string_agg(name, '0') < string_agg(name, 'x')", ', ')} FROM customers`
    const verdict = judge(parseText, { text, catalog: shop(), rowCap: 1_000, params: [] }, { ...HERE, meter: () => void (count += 1) })
    return [verdict.kind, count]
  }
  assert.deepEqual(passes(1), ['made', 2])
  assert.deepEqual(passes(20), ['heavy', 1])
})
