import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { catalog, table, type } from '../../../../../test/support/postgres-catalog.ts'
import { openGuard, say, type Guard } from '../../../../../test/support/postgres-guard.ts'
import type { Catalog, CatalogTable } from '../../../driver.ts'

let guard: Guard
before(async () => {
  guard = await openGuard()
})
after(() => guard[Symbol.asyncDispose]())

const REGCLASS = 2205

/** Returns the same table with these type oids. */
function typed(made: CatalogTable, oids: readonly number[]): CatalogTable {
  const columns = made.columns.map((column, index) => {
    const { detail } = column
    return { ...column, detail: { ...(detail as object), typeOid: oids[index] ?? 25 } }
  })
  return { ...made, columns }
}

const shown: Catalog = catalog(
  [
    typed(table('t', ['id int4', 'r regclass', 'rs _regrole', 'd public.rel', 'ds public._rel', 'm public.mood']), [
      23,
      REGCLASS,
      4097,
      20_000,
      20_000,
      20_000,
    ]),
  ],
  {
    types: [
      { ...type('public.rel', 'domain', { of: 'regclass' }), ofOid: REGCLASS },
      { ...type('public._rel', 'array', { of: 'public.rel' }), ofOid: 20_000 },
      { ...type('public.mood', 'enum') },
    ],
  },
)

const inner = (column: string, to: string): string =>
  `(SELECT CAST("${column}" AS "pg_catalog"."${to}") FROM "public"."t" AS "t0") AS "t1" ("${column}")`

for (const [column, to] of [
  ['r', 'text'],
  ['rs', '_text'],
  ['d', 'text'],
  ['ds', '_text'],
] as const) {
  test(`a literal beside ${column} is not looked up: the column is read as ${to}`, async () => {
    const said = say(await guard.judge(`SELECT coalesce(${column}, '16386') AS x FROM t`, shown))
    assert.equal(said, `SELECT COALESCE("t1"."${column}", '16386') AS "x" FROM ${inner(column, to)} LIMIT 1001`)
    assert.deepEqual(guard.reported, [])
  })
}

test('a column of an enum is read as its own type', async () => {
  const said = say(await guard.judge('SELECT m FROM t', shown))
  assert.equal(said, 'SELECT "t1"."m" AS "m" FROM (SELECT "m" FROM "public"."t" AS "t0") AS "t1" ("m") LIMIT 1001')
})

test('a literal beside a column of a domain runs no CHECK: the column is read as the base type', async () => {
  const checked = catalog(
    [typed(table('t', ['id int4', 'd public.above', 'ds public._above']), [23, 20_001, 20_002])],
    {
      types: [
        { ...type('public.leaky', 'domain', { of: 'text', refused: 'Its CHECK.' }), ofOid: 25 },
        { ...type('public.above', 'domain', { of: 'public.leaky', refused: 'A CHECK below.' }), ofOid: 20_000 },
        { ...type('public._above', 'array', { of: 'public.above', refused: 'A CHECK below.' }), ofOid: 20_001 },
      ],
    },
  )
  const said = say(await guard.judge(`SELECT coalesce(d, 'x') AS x FROM t`, checked))
  assert.equal(said, `SELECT COALESCE("t1"."d", 'x') AS "x" FROM ${inner('d', 'text')} LIMIT 1001`)
  const many = say(await guard.judge(`SELECT array_append(ds, 'x') AS x FROM t`, checked))
  assert.match(many, /CAST\("ds" AS "pg_catalog"\."_text"\)/)
})
