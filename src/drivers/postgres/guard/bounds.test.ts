// Tests that no text delays other requests, breaks a thread, or exceeds its deadline.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { shop, table } from '../../../../test/support/postgres-catalog.ts'
import { openGuard, say, type Guard } from '../../../../test/support/postgres-guard.ts'

let guard: Guard
before(async () => {
  guard = await openGuard()
})
after(() => guard[Symbol.asyncDispose]())

const TEXT_MAX = 65_536

/** Repeats the piece up to this length. */
function filled(head: string, piece: string, tail = '', length = TEXT_MAX): string {
  return head + piece.repeat(Math.floor((length - head.length - tail.length) / piece.length)) + tail
}

/** Each of these texts was slow or broke the parser, or was suspected of doing so. */
const FAMILIES: Readonly<Record<string, (length: number) => string>> = {
  'runs of comments': (length) => filled('SELECT 1 ', '/**/', '', length),
  'comments in comments': (length) => filled('SELECT 1 ', '/*', '', length),
  'comments that never end': (length) => filled('SELECT 1 ', '/*/**/', '', length),
  'line comments': (length) => filled('SELECT 1 ', '--\n', '', length),
  'operators side by side': (length) => filled('SELECT 1 ', '+-', ' 1', length),
  'an operator': (length) => filled('SELECT 1 ', '<', ' 1', length),
  'a word': (length) => filled('SELECT ', 'a', '', length),
  'a quoted name': (length) => filled('SELECT "', 'a', '"', length),
  'a number': (length) => filled('SELECT ', '1', '', length),
  'string continuations': (length) => filled("SELECT 'a'", "\n'b'", '', length),
  'string continuations over comments': (length) => filled("SELECT 'a'", "--c\n'b'", '', length),
  'comments after an escape string': (length) => filled("SELECT E'a''b\\'c' ", '/**/', '', length),
  'comments after a continued string': (length) => filled("SELECT 'a'\n'b' ", '/**/', '', length),
  'a sum after an escape string': (length) => filled("SELECT E'a''b\\'c' || 1", '+1', '', length),
  'doubled quotes': (length) => filled("SELECT '", "''", "'", length),
  'dollar quotes that fail': (length) => filled('SELECT $a$', '$b$', '$a$', length),
  spaces: (length) => filled('SELECT 1', ' ', ', 2', length),
  'a sum': (length) => filled('SELECT 1', '+1', '', length),
  parentheses: (length) => filled('SELECT ', '(', '', length),
  'a list': (length) => filled('SELECT 1 IN (1', ',1', ')', length),
  AND: (length) => filled('SELECT true', ' AND true', '', length),
  'CASE arms': (length) => filled('SELECT CASE', ' WHEN true THEN 1', ' END', length),
  VALUES: (length) => filled('VALUES (1)', ',(1)', '', length),
  UNION: (length) => filled('SELECT 1', ' UNION SELECT 1', '', length),
  casts: (length) => filled('SELECT 1', '::int', '', length),
  'sort keys': (length) => filled('SELECT 1 AS a ORDER BY a', ',a', '', length),
  fields: (length) => filled('SELECT a', '.a', '', length),
  subscripts: (length) => filled("SELECT '{}'::int[]", '[1]', '', length),
  statements: (length) => filled('SELECT 1', ';SELECT 1', '', length),
  joins: (length) => filled('SELECT 1 FROM orders a', ' JOIN orders USING (id)', '', length),
}

function msOf({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1000
}

describe('a text of 64 KiB', () => {
  for (const [name, make] of Object.entries(FAMILIES)) {
    test(`a text of 64 KiB made of ${name} is judged without breaking a thread or delaying other queries`, async () => {
      await guard.judge('SELECT 1', shop())
      const before = process.threadCpuUsage()
      const verdict = await guard.judge(make(TEXT_MAX), shop())
      const busyMs = msOf(process.threadCpuUsage(before))
      const said = JSON.stringify(verdict)
      assert.doesNotMatch(said, /parser ran out of time or memory/)
      assert.ok(said.length < 4_000, `the answer repeats the text: ${said.length}`)
      // Without the bounds, some texts blocked the main thread for seconds. Other load does not change the thread's CPU
      // time.
      assert.ok(busyMs < 500, `the main thread worked for ${busyMs} ms`)
    })
  }
})

test('a text of 4 KiB, which the main thread may judge, takes less than a second there', async () => {
  for (const [name, make] of Object.entries(FAMILIES)) {
    const before = process.threadCpuUsage()
    await guard.judge(make(4_096), shop())
    assert.ok(msOf(process.threadCpuUsage(before)) < 1_000, name)
  }
  assert.deepEqual(guard.reported, [])
})

const TEXTS = shop({}, [table('t', ['id int4', 'a text', 'j jsonb', 'v tsvector', 'q tsquery', 'p _text'])])
type Around = (inner: string) => string

/** Calls whose argument the guard prints several times. Each is nested in itself. */
const MEASURED: Readonly<Record<string, readonly [Around, string?]>> = {
  replace: [(x) => `replace(${x}, a, a)`],
  translate: [(x) => `translate(${x}, a, a)`],
  btrim: [(x) => `btrim(${x}, a)`],
  split_part: [(x) => `split_part(${x}, a, 1)`],
  strpos: [(x) => `strpos(${x}, a)::text`],
  normalize: [(x) => `normalize(${x})`],
  'IS NORMALIZED': [(x) => `(${x} IS NORMALIZED)::text`],
  repeat: [(x) => `repeat(${x}, id)`],
  'repeat of rows': [(x) => `repeat(${x}, generate_series(1, 3))`],
  lpad: [(x) => `lpad(a, length(${x}))`],
  array_to_string: [(x) => `array_to_string(string_to_array(${x}, a), a)`],
  ts_rewrite: [(x) => `ts_rewrite(${x}, q, q)`, 'q'],
  ts_rank: [(x) => `ts_rank(v, (${x})::text::tsquery)::text`],
  ts_headline: [(x) => `ts_headline(${x}, q)`],
  to_tsquery: [(x) => `to_tsquery(${x})::text`],
  '@@': [(x) => `(v @@ ${x})::text`],
  // For these, PostgreSQL repeats the arguments.
  BETWEEN: [(x) => `((${x}) BETWEEN a AND a)::text`],
  'NOT BETWEEN SYMMETRIC': [(x) => `((${x}) NOT BETWEEN SYMMETRIC a AND a)::text`],
  'BETWEEN SYMMETRIC, in a bound': [(x) => `(a BETWEEN SYMMETRIC (${x}) AND a)::text`],
  'IN of columns': [(x) => `((${x}) IN (a, j::text, a, a, a, a))::text`],
  LIKE: [(x) => `(${x} LIKE a)::text`],
  'LIKE, in the pattern': [(x) => `(a LIKE ${x})::text`],
  'LIKE ANY': [(x) => `(${x} LIKE ANY (p))::text`],
  '@>': [(x) => `to_jsonb(${x} @> (j || j))`, 'j'],
  '&&': [(x) => `(p && string_to_array(${x}, ','))::text`],
  jsonb_path_query_array: [(x) => `jsonb_path_query_array(${x}, '$[*] ? (@ == $[*])')`, 'j'],
  'variables of a path': [(x) => `jsonb_path_query_array(j, '$[*] ? (@ == $a[*])', ${x})`, 'j'],
  JSON_QUERY: [(x) => `to_jsonb(JSON_QUERY(${x}, '$[*] ? (@ == $[*])'))`, 'j'],
  'the separator of string_agg': [(x) => `(SELECT string_agg(a, ${x}) FROM t)`],
  jsonb_object_agg: [(x) => `(SELECT jsonb_object_agg(a, ${x}) FROM t)`],
  JSON_OBJECTAGG: [(x) => `(SELECT JSON_OBJECTAGG(${x} : a RETURNING text) FROM t)`],
  'array_agg in a window': [(x) => `(SELECT (array_agg(${x}) OVER ())::text FROM t LIMIT 1)`],
}

describe('nested calls', () => {
  for (const [name, [around, innermost = 'a']] of Object.entries(MEASURED)) {
    test(`nested calls of ${name} do not delay other queries`, async () => {
      for (const levels of [8, 11, 24, 50]) {
        let inner = innermost
        for (let level = 0; level < levels; level++) inner = around(inner)
        const before = process.threadCpuUsage()
        const verdict = await guard.judge(`SELECT ${inner} FROM t`, TEXTS)
        const busyMs = msOf(process.threadCpuUsage(before))
        if (levels > 11) assert.match(say(verdict), /^limit: length$/)
        // Without the bound, 11 levels of replace() blocked the main thread for 11 s.
        assert.ok(busyMs < 500, `the main thread worked for ${busyMs} ms at ${levels} levels`)
      }
      assert.deepEqual(guard.reported, [])
    })
  }

  test('the refusal of nested calls names the size and the limit, and says what to write instead', async () => {
    const verdict = await guard.judge(`SELECT ${'normalize('.repeat(9)}a${')'.repeat(9)} FROM t`, TEXTS)
    assert.ok(verdict.kind === 'denied')
    assert.match(verdict.why, /becomes \d{6} expressions.*; the limit is 120000$/)
    assert.match(verdict.hint, /WITH v AS MATERIALIZED/)
    await guard.confined('WITH v AS MATERIALIZED (SELECT normalize(a) AS x FROM t) SELECT normalize(x) FROM v', TEXTS)
  })

  test('nested calls with short constants are printed as they are written', async () => {
    const stripped = "replace(replace(replace(replace(replace(a, ' ', ''), '-', ''), '(', ''), ')', ''), '+', '')"
    const { text } = await guard.confined(`SELECT ${stripped} AS phone FROM t`, TEXTS)
    assert.doesNotMatch(text, /CASE/)
    assert.equal(text.split('"replace"(').length - 1, 5)
  })

  // PostgreSQL copies the expression of a sub-select to each place that reads its column.
  test('calls in nested sub-selects are refused if the database would multiply them', async () => {
    const nested = (levels: number, value: string, end = '') =>
      `SELECT ${value} AS v, a FROM (`.repeat(levels) + 'SELECT a AS v, a FROM t' + `${end}) q`.repeat(levels)
    const chain = (levels: number, how = '') => {
      const parts = Array.from(
        { length: levels },
        (_, n) => `c${n + 1} AS ${how} (SELECT btrim(v, a) AS v, a FROM c${n})`,
      )
      return `WITH c0 AS (SELECT a AS v, a FROM t), ${parts.join(', ')} SELECT v FROM c${levels}`
    }
    const lateral = (levels: number, rest = '') => {
      const items = Array.from(
        { length: levels },
        (_, n) => `LATERAL (VALUES (btrim(v${n}.x, t.a))${rest}) v${n + 1}(x)`,
      )
      return `SELECT v${levels}.x FROM t, LATERAL (VALUES (t.a)) v0(x), ${items.join(', ')}`
    }
    const refused = [
      lateral(11),
      nested(11, 'btrim(v, a)'),
      nested(20, 'coalesce(v, v)'),
      nested(20, "CASE WHEN v = 'x' THEN v END"),
      chain(11),
      chain(11, 'NOT MATERIALIZED'),
      'SELECT btrim(v, a) AS v, a FROM ('.repeat(11) +
        'SELECT a AS v, a FROM t UNION ALL SELECT a, a FROM t' +
        ') q'.repeat(11),
    ]
    for (const sql of refused) assert.match(say(await guard.judge(sql, TEXTS)), /^limit: length$/, sql)
    for (const sql of [
      nested(5, 'btrim(v, a)'),
      nested(11, 'btrim(v, a)', ' OFFSET 0'),
      lateral(11, ", ('x')"),
      chain(11, 'MATERIALIZED'),
    ]) {
      await guard.confined(sql, TEXTS)
    }
    await guard.confined('SELECT * FROM ('.repeat(30) + 'SELECT * FROM t' + ') q'.repeat(30), TEXTS)
  })

  test('a few levels of nested calls are allowed', async () => {
    await guard.confined('SELECT split_part(split_part(split_part(a, lower(a), 1), p[1], 2), p[2], 1) FROM t', TEXTS)
    await guard.confined('SELECT btrim(btrim(btrim(btrim(a, a), a), a), a) FROM t', TEXTS)
  })
})

test('a join by 1,000 names does not delay other queries', async () => {
  const columns = Array.from({ length: 1_000 }, (_, n) => `column_${n} int4`)
  const wide = shop({}, [table('wide', columns), table('wide2', columns)])
  for (const join of [
    'NATURAL JOIN wide2',
    'NATURAL FULL JOIN wide2',
    `JOIN wide2 USING (${columns.map((column) => column.split(' ')[0]).join(', ')})`,
  ]) {
    const before = process.threadCpuUsage()
    const verdict = await guard.judge(`SELECT count(*) FROM wide ${join}`, wide)
    const busyMs = msOf(process.threadCpuUsage(before))
    assert.equal(verdict.kind, 'confined')
    // Before the mend, the sizes of all columns were searched for each name: 80 ms.
    assert.ok(busyMs < 50, `the main thread worked for ${busyMs} ms: ${join.slice(0, 20)}`)
  }
})
