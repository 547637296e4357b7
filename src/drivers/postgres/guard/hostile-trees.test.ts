// Gives the guard parse trees that no parser would make. It tries a hostile part at every position of every allowed
// node. The guard must refuse the part, or print it as a string or a quoted name.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { audit } from '../../../../test/support/postgres-audit.ts'
import { shop, table, type } from '../../../../test/support/postgres-catalog.ts'
import { CAPS, say } from '../../../../test/support/postgres-guard.ts'
import { loadModule } from 'libpg-query'
import { confine } from './confine.ts'
import { NODES } from './allowed/allowed-nodes.ts'
import { AppError } from '../../../errors.ts'
import { parseText } from './syntax/parse-text.ts'
import type { Parsed, Parser } from './syntax/parser.ts'

before(() => loadModule())

/** Together, these queries contain every allowed node. */
const QUERIES = [
  'SELECT DISTINCT ON (id) id AS a, c.*, -total FROM orders c WHERE id IN (1, 2.5) AND NOT (note IS NULL OR flag IS TRUE) ORDER BY id DESC NULLS LAST LIMIT 3 OFFSET 1',
  "SELECT CASE id WHEN 1 THEN 'x' ELSE 'y' END, COALESCE(note, 'z'), GREATEST(1, id), NULLIF(id, 0), ARRAY[1, id], ROW(id, note), (tags)[1:2], (tags)[1] FROM orders",
  "SELECT id::text, CAST(total AS numeric(10, 2)), '{}'::int[], note COLLATE \"C\", current_date, current_time(3), B'101', true FROM orders",
  'SELECT count(*) FILTER (WHERE id > 1), sum(DISTINCT id ORDER BY id), string_agg(note, $$,$$ ORDER BY id), percentile_cont(0.5) WITHIN GROUP (ORDER BY id), concat(VARIADIC tags), make_interval(days => 1) FROM orders GROUP BY tags',
  'SELECT rank() OVER w, sum(id) OVER (PARTITION BY note ORDER BY id ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING EXCLUDE TIES) FROM orders WINDOW w AS (ORDER BY id)',
  'SELECT id, grouping(id) FROM orders GROUP BY GROUPING SETS ((id), ROLLUP (id), ()) HAVING count(*) > 1',
  'WITH RECURSIVE r (n) AS MATERIALIZED (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SEARCH DEPTH FIRST BY n SET o CYCLE n SET y TO 1 DEFAULT 0 USING p SELECT * FROM r',
  'SELECT * FROM orders o JOIN customers c USING (id) AS j LEFT JOIN (products p CROSS JOIN stores s) AS k (a, b) ON o.id = k.a NATURAL JOIN people',
  'SELECT * FROM ONLY orders, LATERAL (SELECT orders.id AS x) l, generate_series(1, 2) WITH ORDINALITY AS g (a, b), ROWS FROM (unnest(ARRAY[1]), generate_series(1, 3)) AS f (c, d)',
  "SELECT t.a FROM json_to_record('{}') AS t (a int, b text), orders TABLESAMPLE system (5) REPEATABLE (1), unnest(ARRAY[1], ARRAY[2]) u",
  'SELECT (SELECT 1), EXISTS (SELECT 1), id = ANY (SELECT 1), ARRAY(SELECT 1), id BETWEEN 1 AND 2, note LIKE $$a$$, id = ANY (ARRAY[1]), id IS DISTINCT FROM 1 FROM orders',
  'VALUES (1, $$a$$), (2, $$b$$)',
  'SELECT (home).city FROM people',
  'SELECT id + $1 FROM orders WHERE id = $1 LIMIT $1',
  'SELECT JSON_OBJECT(note: id ABSENT ON NULL WITH UNIQUE KEYS RETURNING jsonb), JSON_ARRAY(1, note FORMAT JSON), JSON_ARRAY(SELECT 1), JSON_OBJECTAGG(note: id), JSON_ARRAYAGG(id ORDER BY id) FILTER (WHERE true) OVER (ORDER BY id) FROM orders',
  "SELECT note IS JSON OBJECT WITH UNIQUE KEYS, JSON(note), JSON_SCALAR(1), JSON_SERIALIZE(note RETURNING bytea), JSON_VALUE(note, '$' PASSING 1 AS x RETURNING int DEFAULT 1 ON EMPTY NULL ON ERROR) FROM orders",
  "SELECT * FROM JSON_TABLE('{}', '$' AS root PASSING 1 AS x COLUMNS (n FOR ORDINALITY, a int PATH '$.a' DEFAULT 1 ON EMPTY, NESTED PATH '$.b' COLUMNS (c text))) AS j (a, b, c)",
]

const exposed = shop(
  { types: [type('public.order_status', 'enum'), type('public.address', 'composite', { attributes: ['city text'] })] },
  [
    table('people', ['home public.address']),
    table('orders', ['id int4', 'total numeric', 'note text', 'flag bool', 'tags _text'], { key: ['id'] }),
  ],
)

type Json = Record<string, unknown>
interface Place {
  readonly holder: Json | unknown[]
  readonly key: string | number
  readonly value: unknown
  readonly of: string
  readonly kind: string
}

function* places(name: string, struct: Json): Generator<Place> {
  const keys = new Map<string, string>(Object.entries(Object.entries(NODES).find(([each]) => each === name)?.[1] ?? {}))
  for (const [key, value] of Object.entries(struct)) {
    const kind = keys.get(key) ?? 'place'
    if (kind === 'place') continue
    yield { holder: struct, key, value, of: name, kind }
    if (kind === 'node') yield* nodePlaces(value)
    if (['nodes', 'words', 'fields'].includes(kind) && Array.isArray(value)) {
      for (const [index, item] of value.entries()) {
        yield { holder: value, key: index, value: item, of: name, kind: 'item' }
        yield* nodePlaces(item)
      }
    }
    if (kind.startsWith('struct:') && isJson(value)) yield* places(kind.slice('struct:'.length), value)
  }
}

function* nodePlaces(node: unknown): Generator<Place> {
  if (!isJson(node)) return
  for (const [tag, struct] of Object.entries(node)) if (isJson(struct)) yield* places(tag, struct)
}

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function treeOf(sql: string): { stmts: { stmt: { SelectStmt: Json } }[] } {
  const parsed = parseText(sql)
  assert.equal(parsed.kind, 'tree', sql)
  return parsed.kind === 'tree' ? (parsed.tree as never) : { stmts: [] }
}

/** Runs the guard as if the parser had returned `tree` for the caller's text. */
async function judged(tree: unknown): Promise<{ readonly said: string; readonly reported: readonly string[] }> {
  const reported: string[] = []
  let isFirst = true
  const parser: Parser = {
    parse: (text): Parsed => {
      const parsed: Parsed = isFirst ? { kind: 'tree', tree } : parseText(text)
      isFirst = false
      return parsed
    },
    judge: () => Promise.resolve({ kind: 'lost' }),
    locate: () => Promise.resolve(null),
    turn: () => Promise.resolve(),
    report: (problem) => reported.push(problem),
  }
  const signal = new AbortController().signal
  const params = JSON.stringify(tree).includes('"ParamRef"') ? { params: { values: ['7'], json: '' } } : {}
  try {
    return { said: say(await confine(parser, { text: 'x', limit: null, ...params }, exposed, CAPS, signal)), reported }
  } catch (error) {
    // If the hostile part is the number of a parameter, a value may be missing or unused.
    if (!(error instanceof AppError) || error.code !== 'INVALID_REQUEST') throw error
    return { said: `params: ${error.message}`, reported }
  }
}

/**
 * Makes each change at each position of each query, one at a time, and checks the result. Returns the number of trees.
 */
async function eachPlace(
  change: (place: Place) => readonly unknown[],
  check: (place: Place, tree: unknown, put: unknown, sql: string) => Promise<void>,
): Promise<number> {
  let count = 0
  for (const sql of QUERIES) {
    const tree = treeOf(sql)
    const select = tree.stmts[0]?.stmt.SelectStmt
    assert.ok(select)
    for (const place of [...places('SelectStmt', select)]) {
      for (const put of change(place)) {
        Reflect.set(place.holder, place.key, put)
        await check(place, tree, put, sql)
        count += 1
      }
      Reflect.set(place.holder, place.key, place.value)
    }
  }
  return count
}

const where = (place: Place, sql: string): string => `${place.of}.${String(place.key)} of ${sql}`

test('the sample queries are allowed, and contain every allowed node', async () => {
  const met = new Set(['SelectStmt'])
  for (const sql of QUERIES) {
    const tree = treeOf(sql)
    assert.match((await judged(tree)).said, /^(SELECT|WITH|VALUES)/, sql)
    for (const place of places('SelectStmt', tree.stmts[0]?.stmt.SelectStmt ?? {})) {
      met.add(place.of)
      if (place.kind.startsWith('struct:')) met.add(place.kind.slice('struct:'.length))
      if (isJson(place.value)) for (const tag of Object.keys(place.value)) met.add(tag)
    }
  }
  assert.deepEqual(
    Object.keys(NODES).filter((name) => !met.has(name)),
    [],
  )
})

describe('hostile parse trees', () => {
  test('the guard refuses an unknown key in every node', async () => {
    const count = await eachPlace(
      ({ value, kind }) =>
        kind.startsWith('struct:') && isJson(value)
          ? [{ ...value, unheardOf: 1 }]
          : isJson(value)
            ? Object.entries(value).map(([tag, held]) => ({ [tag]: { ...(held as Json), unheardOf: 1 } }))
            : [],
      async (place, tree, _put, sql) => {
        assert.equal((await judged(tree)).said, 'statement: unheardOf', where(place, sql))
      },
    )
    assert.ok(count > 500)
  })

  test('the guard refuses an unknown node at every position of a node', async () => {
    await eachPlace(
      ({ kind }) => (kind === 'node' || kind === 'item' ? [{ UnheardOf: {} }, { A_Const: {}, UnheardOf: {} }] : []),
      async (place, tree, _put, sql) => {
        assert.match((await judged(tree)).said, /^statement: (UnheardOf|A_Const)$/, where(place, sql))
      },
    )
  })

  test('the guard refuses a value of another kind at every position', async () => {
    await eachPlace(
      ({ kind }) =>
        kind === 'text' ? [1, null, ['x']] : kind === 'flag' ? [false, 'x'] : kind === 'int' ? ['1'] : [7, 'x'],
      async (place, tree, _put, sql) => {
        assert.match((await judged(tree)).said, /^[a-z]+: /, where(place, sql))
      },
    )
  })

  test('the guard refuses a query of a hidden table at every position of a node', async () => {
    const select = { targetList: [], fromClause: [{ RangeVar: { relname: 'secrets', inh: true } }], op: 'SETOP_NONE' }
    const hidden = [
      { SubLink: { subLinkType: 'EXPR_SUBLINK', subselect: { SelectStmt: select } } },
      { FuncCall: { funcname: [{ String: { sval: 'pg_read_file' } }] } },
      { ColumnRef: { fields: [{ String: { sval: 'ssn' } }] } },
    ]
    await eachPlace(
      ({ kind }) => (kind === 'node' || kind === 'item' ? hidden : []),
      async (place, tree, put, sql) => {
        const { said } = await judged(tree)
        assert.match(said, /^[a-z]+: /, `${JSON.stringify(put).slice(0, 20)} in ${where(place, sql)}`)
      },
    )
  })
})

const HOSTILE = [
  '',
  '"',
  '""',
  "'",
  "''",
  "'; DROP TABLE x; --",
  '"; DROP TABLE x; --',
  '" FROM secrets --',
  "' || (SELECT token FROM secrets) || '",
  '\\',
  "\\'",
  '\\"',
  '--',
  '/*',
  '*/',
  '$$',
  '$x$',
  ';',
  '(',
  ')',
  ',',
  'a, (SELECT token FROM secrets)',
  'a) AS (SELECT 1) SELECT token FROM secrets --',
  'days => 1), (SELECT token FROM secrets), make_interval(days',
  'OPERATOR(public.=)',
  '= ANY (SELECT token FROM secrets) OR 1 =',
  '*',
  'pg_catalog',
  'public',
  'secrets',
  'pg_read_file',
  'regclass',
  'SELECT',
  'U&"\\0061"',
  'ünïcødé 😀 漢字',
  '\n',
  '\t\u00a0\ufeff',
  'x'.repeat(80),
  '1e',
  '0x1F',
  'b101',
  'x1F',
  'Infinity',
]

test('a hostile string at every position of a string is printed as a string or name, or is refused', async () => {
  let confined = 0
  const count = await eachPlace(
    ({ kind }) => (kind === 'text' ? HOSTILE : []),
    async (place, tree, put, sql) => {
      const { said, reported } = await judged(tree)
      if (/^[a-z]+: /.test(said)) return
      confined += 1
      const parsed = parseText(said)
      assert.equal(parsed.kind, 'tree')
      const wrong = parsed.kind === 'tree' ? audit(parsed.tree, exposed) : []
      assert.deepEqual([wrong, reported], [[], []], `${JSON.stringify(put)} in ${where(place, sql)}: ${said}`)
    },
  )
  assert.ok(count > 10_000 && confined > 1_000, `${confined} of ${count}`)
})
