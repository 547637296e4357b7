// Calls the functions and operators that the guard allows with very large arguments, because PostgreSQL cannot cancel
// some of them. Each allowed call must end soon after its timeout, and use limited memory. The signatures come from the
// catalog of a real server, so newly allowed functions are called too. A run makes some of the calls, which RUN_SEED
// chooses. To make all calls: `SWEEP=all SECONDS_MAX=900 npm test -- test/attacks/postgres/great-arguments.test.ts`.
// SWEEP may also be a pattern: `SWEEP='\.position\('`. SWEEP_VERSION chooses the server's version.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'pg'
import { unseal } from '../../../src/drivers/confined.ts'
import type { Catalog, Connection, Driver, Limits } from '../../../src/drivers/driver.ts'
import type { PostgresQuery } from '../../../src/drivers/postgres/confined-query.ts'
import { createPostgresDriver } from '../../../src/drivers/postgres/driver.ts'
import { FUNCTIONS } from '../../../src/drivers/postgres/guard/allowed/allowed-functions.ts'
import { EXTENSION_COLLECTS, EXTENSION_FUNCTIONS, OWN_OPERATORS } from '../../../src/drivers/postgres/guard/allowed/types-and-extensions.ts'
import { settingsOf } from '../../support/postgres-session.ts'
import { startPostgres, type PostgresVersion, type TestPostgres } from '../../support/postgres.ts'

const SEED = Number(process.env['SEED'] ?? process.env['RUN_SEED'] ?? 1)
const SWEEP = process.env['SWEEP']
/** After this time, a run starts no further call. */
const SECONDS_MAX = Number(process.env['SECONDS_MAX'] ?? 20)
const TIMEOUT_MS = 300
/** Limit on the processor time of a call. Without the guard's bounds, some calls take minutes. */
const CPU_MS_MAX = Number(process.env['CPU_MS_MAX'] ?? 3_000)
/** After this processor time, a call is ended. */
const GIVEN_UP_MS = 2 * CPU_MS_MAX
const GROWN_MB = 700
const LIMITS: Limits = { rowCap: 100, maxResponseBytes: 1 << 20, timeoutMs: TIMEOUT_MS, maxCost: 1e15 }

const list = (item: string, by: string, count: number): string => `(SELECT string_agg(${item}, '${by}') FROM generate_series(1, ${count}) g)`
const POSITIONS = Array.from({ length: 255 }, (_, n) => n + 1).join()

/** Large values of each type, in SQL. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  text: ["repeat('a', 1000000)", "'b' || repeat('a', 400000)", list("'w' || g", ' ', 100_000)],
  bytea: ["repeat('a', 1000000)::bytea", "('b' || repeat('a', 400000))::bytea"],
  bit: ['0::bit(8000000)', '1::bit(1000000)'],
  varbit: ['0::bit(8000000)::varbit', '1::bit(1000000)::varbit'],
  numeric: ['(1e131071 - 1)', '(1e100000 + 1e-16000)'],
  _int4: ['(SELECT array_agg(g) FROM generate_series(1, 100000) g)', '(SELECT array_agg(-g) FROM generate_series(1, 100000) g)'],
  _text: ["(SELECT array_agg('w' || g) FROM generate_series(1, 100000) g)", "(SELECT array_agg('x' || g) FROM generate_series(1, 100000) g)"],
  _float4: ["'{0.1,0.2,0.4,1}'::float4[]"],
  _char: [`'{a,b}'::"char"[]`],
  jsonb: [
    '(SELECT jsonb_agg(g) FROM generate_series(1, 100000) g)',
    "(SELECT jsonb_object_agg('w' || g, g) FROM generate_series(1, 100000) g)",
    "(SELECT jsonb_agg('w' || g) FROM generate_series(1, 100000) g)",
  ],
  json: ['(SELECT json_agg(g) FROM generate_series(1, 100000) g)', "(SELECT json_object_agg('w' || g, g) FROM generate_series(1, 100000) g)"],
  tsvector: [`${list(`'w' || g || ':${POSITIONS}'`, ' ', 1_000)}::tsvector`, `${list("'x' || g || ':1'", ' ', 60_000)}::tsvector`],
  tsquery: [`${list("'w' || g", ' & ', 1_000)}::tsquery`, `${list("'w' || g", ' | ', 20_000)}::tsquery`, `${list("'w' || g", ' <-> ', 1_000)}::tsquery`],
  polygon: [`('(' || ${list("'(0,0)'", ',', 100_000)} || ',(1,1))')::polygon`, `('(' || ${list("'(' || g % 700 || ',' || g || ')'", ',', 100_000)} || ',(1,1))')::polygon`],
  path: [`('[' || ${list("'(0,0)'", ',', 100_000)} || ',(1,1)]')::path`, `('[' || ${list("'(' || g % 700 || ',' || g || ')'", ',', 100_000)} || ']')::path`],
  int4multirange: ['(SELECT range_agg(int4range(g * 4, g * 4 + 1)) FROM generate_series(1, 100000) g)', '(SELECT range_agg(int4range(g * 4 + 2, g * 4 + 3)) FROM generate_series(1, 100000) g)'],
  _int4range: ['(SELECT array_agg(int4range(g * 4, g * 4 + 1) ORDER BY -g) FROM generate_series(1, 100000) g)'],
  citext: ["repeat('a', 1000000)::citext", "('b' || repeat('a', 400000))::citext"],
  hstore: ["(SELECT hstore(array_agg('w' || g), array_agg(g::text)) FROM generate_series(1, 100000) g)", "(SELECT hstore(array_agg('x' || g), array_agg(g::text)) FROM generate_series(1, 100000) g)"],
  ltree: [`${list("'a'", '.', 60_000)}::ltree`, `(${list("'a'", '.', 30_000)} || '.b')::ltree`],
  _ltree: [`(SELECT array_agg(('a.' || g)::ltree) FROM generate_series(1, 100000) g)`, `(SELECT array_agg(('b.' || g)::ltree) FROM generate_series(1, 100000) g)`],
  lquery: [`${list("'*'", '.', 200)}::lquery`, `(${list("'*.a'", '.', 100)} || '.c')::lquery`],
  _lquery: ["(SELECT array_agg(('*.b' || g)::lquery) FROM generate_series(1, 10000) g)"],
  ltxtquery: [`${list("'a*'", ' & ', 1_000)}::ltxtquery`, `${list("'b' || g", ' | ', 10_000)}::ltxtquery`],
  query_int: [`${list("'-' || g", '|', 10_000)}::query_int`, `${list('g::text', '&', 10_000)}::query_int`],
  cube: ['cube((SELECT array_agg(g::float8) FROM generate_series(1, 100) g))'],
}

/** Literals of each type, in SQL. 10000 is the largest count that the guard allows. */
const LITERALS: Readonly<Record<string, readonly string[]>> = {
  int2: ['3::int2'], int4: ['10000', '2'], int8: ['10000::int8', '2::int8'], float4: ['1.5::float4'], float8: ['1.5::float8', '1e300::float8'],
  bool: ['true'], jsonpath: ["'$[*] ? (@ == $[*])'", "'$.**'", "'$[*] > 5'"], regconfig: ["'english'"], name: ["'a'::name"], char: [`'a'::"char"`],
  bpchar: ["repeat('a', 10000)::bpchar"], date: ["'2020-01-01'::date"], time: ["'10:00'::time"], timetz: ["'10:00+00'::timetz"], interval: ["'1 day'::interval"],
  timestamp: ["'2020-01-01'::timestamp"], timestamptz: ["'2020-01-01+00'::timestamptz"], uuid: ["'00000000-0000-0000-0000-000000000000'::uuid"],
  inet: ["'1.2.3.4'::inet"], cidr: ["'1.2.3.0/24'::cidr"], macaddr: ["'00:00:00:00:00:00'::macaddr"], macaddr8: ["'00:00:00:00:00:00:00:00'::macaddr8"],
  money: ["'1'::money"], point: ['point(0,0)'], box: ['box(point(0,0), point(1,1))'], circle: ['circle(point(0,0), 1)'], line: ["'{1,2,3}'::line"],
  lseg: ["'[(0,0),(1,1)]'::lseg"], oid: ['1::oid'], pg_lsn: ["'0/0'::pg_lsn"], int4range: ['int4range(1, 1000000)'], int8range: ['int8range(1, 9)'],
  numrange: ['numrange(1, 9)'], daterange: ["daterange('2020-01-01', '2021-01-01')"], tsrange: ["'[2020-01-01,2021-01-01]'::tsrange"],
  tstzrange: ["'[2020-01-01,2021-01-01]'::tstzrange"], int8multirange: ["'{[1,2)}'::int8multirange"], nummultirange: ["'{[1,2)}'::nummultirange"],
  datemultirange: ["'{}'::datemultirange"], tsmultirange: ["'{}'::tsmultirange"], tstzmultirange: ["'{}'::tstzmultirange"], _int8: ["'{1,2}'::int8[]"],
}

/** For each pseudo-type, the types to try. */
const ANY: Readonly<Record<string, readonly string[]>> = {
  anyelement: ['int4', 'text'], anynonarray: ['text'], any: ['text', 'jsonb'], anyarray: ['_int4', '_text'], anycompatible: ['int4', 'text'], anycompatiblenonarray: ['int4', 'text'],
  anycompatiblearray: ['_int4', '_text'], anyrange: ['int4range'], anymultirange: ['int4multirange'], anycompatiblerange: ['int4range'], anycompatiblemultirange: ['int4multirange'],
}

interface Signature {
  readonly name: string
  readonly kind: 'function' | 'infix' | 'prefix'
  readonly schema: string
  readonly types: readonly string[]
}

const owned = new AsyncDisposableStack()
let server: TestPostgres
let driver: Driver
let connection: Connection
let catalog: Catalog
let client: Client
const columns = new Map<string, readonly string[]>()

before(async () => {
  const version = process.env['SWEEP_VERSION']
  server = await startPostgres({ settings: { shared_buffers: '128MB' }, ...(version !== undefined && { version: Number(version) as PostgresVersion }) })
  owned.use(server)
  const installed = await server.query('postgres', 'SELECT name FROM pg_available_extensions')
  const extensions = [...EXTENSION_FUNCTIONS.keys()].filter((name) => installed.some(([each]) => each === name))
  const created = extensions.map((name) => `CREATE EXTENSION IF NOT EXISTS "${name}" SCHEMA ext CASCADE;`).join('\n')
  await server.createDatabase('great', `CREATE SCHEMA ext; SET search_path = public, ext; ${created}`)
  const known = new Map((await server.query('great', 'SELECT typname, typstorage FROM pg_type')).map(([name, storage]) => [name ?? '', storage]))
  // Values of some types are never stored out of line, so large ones do not fit into a row. The query itself contains
  // them.
  const defined = Object.entries(VALUES).filter(([type]) => known.has(type) && known.get(type) !== 'p')
  for (const [type, values] of Object.entries(VALUES)) {
    if (known.has(type)) columns.set(type, known.get(type) === 'p' ? values : values.map((_, at) => `g.v_${type}_${at}`))
  }
  const names = defined.flatMap(([type, values]) => values.map((_, at) => `v_${type}_${at} ${type === 'bit' ? 'varbit' : type === 'varbit' || !type.startsWith('_char') ? type : '"char"[]'}`))
  const values = defined.flatMap(([, each]) => each)
  await server.query('great', `SET search_path = public, ext; CREATE TABLE great (id int PRIMARY KEY, ${names.join(', ')}); INSERT INTO great SELECT 1, ${values.join(', ')}`)
  driver = owned.use(await createPostgresDriver())
  const { signal } = new AbortController()
  connection = owned.use(await driver.connect(settingsOf(server, 'great'), { allowPrivateHosts: true }, signal))
  const introspected = await connection.introspect(signal)
  const tables = introspected.tables.map((table) => ({ ...table, columns: table.columns.filter((column) => column.unexposable === null) }))
  catalog = { ...introspected, tables }
  client = await open()
  owned.defer(() => client.end().catch(() => undefined))
})
after(() => owned.disposeAsync())

async function open(): Promise<Client> {
  const made = new Client({ connectionString: server.url('great') })
  // A call that does not end is ended with its server process, which breaks the connection.
  made.on('error', () => undefined)
  await made.connect()
  await made.query(`SET statement_timeout = ${TIMEOUT_MS}; SET search_path = pg_catalog, ext; SET work_mem = '4MB'`)
  return made
}

/** Returns the signatures of all functions and operators in the guard's lists. */
async function signatures(): Promise<Signature[]> {
  const types = (of: string): string => `ARRAY(SELECT t.typname FROM unnest(${of}) WITH ORDINALITY a(o, n) JOIN pg_type t ON t.oid = a.o ORDER BY n)`
  const functions = await server.query(
    'great',
    `SELECT p.proname, n.nspname, e.extname, array_to_json(${types('p.proargtypes::oid[]')}) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
     LEFT JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e' LEFT JOIN pg_extension e ON e.oid = d.refobjid
     WHERE p.prokind = 'f' AND p.pronargs BETWEEN 1 AND 5 AND (n.nspname = 'pg_catalog' OR e.extname IS NOT NULL)`,
  )
  const operators = await server.query(
    'great',
    `SELECT o.oprname, n.nspname, e.extname, array_to_json(${types('ARRAY[o.oprleft, o.oprright]')}) FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace
     LEFT JOIN pg_depend d ON d.classid = 'pg_operator'::regclass AND d.objid = o.oid AND d.deptype = 'e' LEFT JOIN pg_extension e ON e.oid = d.refobjid`,
  )
  const out: Signature[] = []
  for (const [name = '', schema = '', extension, args] of functions) {
    const isAllowed = extension === null ? FUNCTIONS.has(name ?? '') || name === 'ts_rewrite' : EXTENSION_FUNCTIONS.get(extension ?? '')?.has(name ?? '')
    if (isAllowed) out.push({ name: name ?? '', kind: 'function', schema: schema ?? '', types: JSON.parse(args ?? '[]') as string[] })
  }
  for (const [name = '', schema = '', extension, args] of operators) {
    const isAllowed = extension === null ? OWN_OPERATORS.has(name ?? '') : EXTENSION_FUNCTIONS.has(extension ?? '')
    const of = JSON.parse(args ?? '[]') as string[]
    if (isAllowed) out.push({ name: name ?? '', kind: of.length === 2 ? 'infix' : 'prefix', schema: schema ?? '', types: of })
  }
  return out
}

/** The memory of these aggregates does not grow with the number of rows. */
const KEEPS_ONE: ReadonlySet<string> = new Set(['avg', 'first', 'histogram', 'last', 'max', 'min', 'st_extent', 'sum'])

test('the rows of each aggregate of an extension are counted, unless it keeps one value', async () => {
  const aggregates = await server.query(
    'great',
    `SELECT DISTINCT e.extname, p.proname FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
     JOIN pg_extension e ON e.oid = d.refobjid WHERE p.prokind = 'a'`,
  )
  const allowed = aggregates.flatMap(([extension, name]) => (EXTENSION_FUNCTIONS.get(extension ?? '')?.has(name ?? '') === true ? [name ?? ''] : []))
  assert.deepEqual(allowed.filter((name) => !KEEPS_ONE.has(name) && !EXTENSION_COLLECTS.has(name)), [])
})

function valuesOf(type: string): readonly string[] {
  const some = ANY[type]
  if (some) return some.flatMap(valuesOf)
  return columns.get(type) ?? LITERALS[type] ?? [`NULL::${type.startsWith('_') ? `${type.slice(1)}[]` : type}`]
}

/**
 * Returns calls with the first value of each type, with the second value of each type, and so on, and with mixtures.
 */
function callsOf({ name, kind, schema, types }: Signature): string[] {
  const values = types.map(valuesOf)
  const most = Math.max(1, ...values.map((each) => each.length))
  const picks = Array.from({ length: most }, (_, n) => types.map(() => n))
  if (types.length > 1) picks.push(types.map((_, at) => at % 2), types.map((_, at) => (at + 1) % 2))
  const made = picks.map((pick) => {
    const args = pick.map((n, at) => values[at]?.[n % (values[at]?.length ?? 1)] ?? 'NULL')
    if (kind === 'function') return `${schema}.${name}(${args.join(', ')})`
    return `${args.length > 1 ? `(${args[0]}) ` : ''}OPERATOR(${schema}.${name}) (${args.at(-1)})`
  })
  return [...new Set(made)]
}

/** Runs the expression if the guard allows it. Returns what is wrong, or null. */
async function problemOf(expression: string): Promise<string | null> {
  const sql = `SELECT count(q.x) FROM (SELECT ${expression} AS x FROM public.great g OFFSET 0) q`
  const verdict = await driver.confine(driver.read({ sql }), catalog, LIMITS, new AbortController().signal)
  tally(verdict.kind)
  if (verdict.kind === 'denied' && process.env['SHOW']) console.log('#', expression, verdict.why)
  if (verdict.kind !== 'confined') return null
  const { text } = unseal<PostgresQuery>(verdict.query, 'POSTGRES')
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  const pid = rows[0]?.pid ?? 0
  if (peakMb(pid) > 200) writeFileSync(`/proc/${pid}/clear_refs`, '5')
  const before = { cpu: cpuMs(pid), mb: peakMb(pid) }
  let isOver = false
  const running = client.query(text).then(
    () => tally('answered'),
    (error: unknown) => tally(error instanceof Error ? ('code' in error ? String(error.code) : error.message) : 'failed'),
  )
  const done = running.finally(() => (isOver = true))
  while (!isOver) {
    await Promise.race([done, pause(200)])
    if (isOver || cpuMs(pid) - before.cpu < GIVEN_UP_MS) continue
    process.kill(pid, 'SIGKILL')
    await done
    client = await reopened()
    return `did not end after ${GIVEN_UP_MS} ms of processor time`
  }
  const [cpu, mb] = [cpuMs(pid) - before.cpu, peakMb(pid)]
  if (mb > GROWN_MB) {
    await client.end()
    client = await open()
  }
  if (cpu > CPU_MS_MAX) return `took ${cpu} ms of processor time`
  return mb > GROWN_MB ? `took ${Math.round(mb)} MB` : null
}

async function reopened(): Promise<Client> {
  for (;;) {
    try {
      return await open()
    } catch {
      await pause(100)
    }
  }
}

function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

function peakMb(pid: number): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
}

const tallies = new Map<string, number>()
function tally(what: string): void {
  tallies.set(what, (tallies.get(what) ?? 0) + 1)
}

function shuffled<T>(items: readonly T[], seed: number): T[] {
  const out = [...items]
  let state = seed >>> 0
  for (let at = out.length - 1; at > 0; at--) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    const other = state % (at + 1)
    const [a, b] = [out[at], out[other]]
    if (a !== undefined && b !== undefined) [out[at], out[other]] = [b, a]
  }
  return out
}

// Only Linux reports the processor time and the memory of a process.
const skip = process.platform !== 'linux'

test(`no function or operator outlives its timeout with very large arguments (seed ${SEED})`, { skip }, async (t) => {
  const until = performance.now() + SECONDS_MAX * 1000
  const all = (await signatures()).flatMap(callsOf)
  const chosen = SWEEP === undefined || SWEEP === 'all' ? all : all.filter((call) => new RegExp(SWEEP).test(call))
  const problems: string[] = []
  let count = 0
  for (const call of shuffled(chosen, SEED)) {
    if (performance.now() > until) break
    count += 1
    const problem = await problemOf(call)
    if (problem !== null) {
      problems.push(`${call} ${problem}`)
      if (SWEEP !== undefined) console.log(`# ${call} ${problem}`)
    }
  }
  t.diagnostic(`${count} of ${all.length} calls: ${JSON.stringify(Object.fromEntries(tallies))}`)
  assert.ok((tallies.get('answered') ?? 0) > 0)
  assert.deepEqual(problems, [])
})
