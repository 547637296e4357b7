// Introspects a real server: the database of the attacks with two logins, and databases with unusual objects.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { join } from 'node:path'
import { askAs, startPostgres, type TestPostgres } from '../../../../test/support/postgres.ts'
import type { Catalog, CatalogColumn, CatalogTable } from '../../driver.ts'
import type { ColumnDetail, PostgresCapture, TableDetail } from '../captured-facts.ts'
import { introspect } from './introspect.ts'

const fixture = readFileSync(join(import.meta.dirname, '../../../../test/attacks/postgres/fixture.sql'), 'utf8')

let postgres: TestPostgres

before(async () => {
  postgres = await startPostgres()
})
after(async () => {
  await postgres[Symbol.asyncDispose]()
})

async function look(database: string, user?: string, password?: string): Promise<Catalog> {
  await using session = await askAs(postgres, database, user, password)
  return await introspect(session.ask, AbortSignal.timeout(60_000))
}

async function fill(name: string, sql: string): Promise<Catalog> {
  return look(await postgres.createDatabase(name, sql))
}

function table(catalog: Catalog, name: string): CatalogTable {
  const found = catalog.tables.findLast((one) => one.table === name)
  assert.ok(found, `no table ${name}`)
  return found
}

function column(catalog: Catalog, name: string, columnName: string): CatalogColumn {
  const found = table(catalog, name).columns.find((one) => one.name === columnName)
  assert.ok(found, `no column ${name}.${columnName}`)
  return found
}

const names = (catalog: Catalog): string[] => catalog.tables.map((one) => `${one.schema}.${one.table}`)
const capture = (catalog: Catalog): PostgresCapture => catalog.capture as PostgresCapture
const detail = (one: CatalogTable): TableDetail => one.detail as TableDetail

test('introspection counts the tables that PostgreSQL plans for a query: partitions, children, tables of views', async () => {
  const seen = await fill(
    'planned',
    `CREATE TABLE days (id int, day int) PARTITION BY RANGE (day);
     CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM (1) TO (2);
     CREATE TABLE days_2 PARTITION OF days FOR VALUES FROM (2) TO (9) PARTITION BY LIST (id);
     CREATE TABLE days_2_1 PARTITION OF days_2 FOR VALUES IN (1);
     CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER away FOREIGN DATA WRAPPER nothing;
     CREATE FOREIGN TABLE days_2_2 PARTITION OF days_2 FOR VALUES IN (2) SERVER away;
     CREATE TABLE parent (id int); CREATE TABLE child () INHERITS (parent); CREATE TABLE plain (id int);
     CREATE VIEW v AS SELECT id FROM days UNION ALL SELECT id FROM plain; CREATE VIEW w AS SELECT * FROM v;
     CREATE VIEW one AS SELECT * FROM plain; CREATE MATERIALIZED VIEW kept AS SELECT id FROM parent;`,
  )
  const counts = Object.fromEntries(seen.tables.map((one) => [one.table, detail(one).tables]))
  assert.deepEqual(counts, {
    ...{ days: 5, days_1: undefined, days_2: 3, days_2_1: undefined, days_2_2: undefined },
    ...{ parent: 2, child: undefined, plain: undefined, v: 6, w: 6, one: undefined, kept: undefined },
  })
})

describe('the database “shop” of the attacks', () => {
  let shop: string
  let seen: Catalog
  before(async () => {
    shop = await postgres.createDatabase('shop', fixture)
    seen = await look(shop)
  })

  test('a superuser sees every table of every schema except the system’s, including partitions', () => {
    for (const name of ['private.salaries', 'public.customers', 'public.Customers', 'public.measurements_2023']) {
      assert.ok(names(seen).includes(name), name)
    }
    assert.ok(!names(seen).some((name) => /^(pg_|information_schema)/.test(name)))
    assert.deepEqual(
      names(seen),
      names(seen).toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    )
  })

  test('introspection reports the kind, the estimated rows and the size of each table', () => {
    const about = (name: string): unknown[] => {
      const one = table(seen, name)
      return [one.kind, one.estimatedRows, detail(one).pages > 0]
    }
    assert.deepEqual(about('customers'), ['table', 200, true])
    assert.deepEqual(about('v_customer_public'), ['view', null, false])
    assert.deepEqual(about('mv_daily_sales'), ['materialized view', 500, true])
    assert.deepEqual(about('measurements'), ['partitioned table', 400, true])
    // Reading a parent table also reads its children.
    assert.deepEqual(about('events'), ['table', 105, true])
  })

  test('introspection lists columns in order, with their types as the login would write them', () => {
    const orders = table(seen, 'orders').columns
    assert.deepEqual(
      orders.map((one) => [one.name, one.type, one.nullable]),
      [
        ['id', 'integer', false],
        ['customer_id', 'integer', false],
        ['status', 'order_status', false],
        ['ordered_at', 'timestamp with time zone', false],
        ['total', 'numeric(12,2)', false],
        ['currency', 'character(3)', false],
        ['note', 'text', true],
        ['meta', 'jsonb', false],
      ],
    )
    assert.deepEqual((orders[2]?.detail as ColumnDetail).type, { schema: 'public', name: 'order_status' })
    assert.equal(column(seen, 'typed_values', 'x').unexposable, null)
    assert.equal((column(seen, 'typed_values', 'ia').detail as ColumnDetail).type.name, '_int4')
  })

  test('introspection lists primary keys in key order, and the columns of foreign keys, even composite ones', () => {
    assert.deepEqual(detail(table(seen, 'order_items')).primaryKey, ['order_id', 'line_no'])
    assert.deepEqual(detail(table(seen, 'measurements_2023')).primaryKey, ['sensor_id', 'at'])
    assert.equal(column(seen, 'regions', 'code').primaryKey, true)
    assert.equal(column(seen, 'regions', 'label').primaryKey, false)
    assert.deepEqual(column(seen, 'order_items', 'product_id').references, {
      schema: 'public',
      table: 'products',
      column: 'id',
    })
    assert.deepEqual(column(seen, 'stores', 'region_code').references, {
      schema: 'public',
      table: 'regions',
      column: 'code',
    })
    assert.deepEqual(column(seen, 'employees', 'manager_id').references?.table, 'employees')
  })

  test('comments in the database become descriptions', () => {
    assert.equal(table(seen, 'customers').description, 'CANARY_comment_customers')
    assert.equal(column(seen, 'customers', 'ssn').description, 'CANARY_comment_ssn')
    assert.equal(column(seen, 'customers', 'id').description, null)
  })

  test('a login with column grants sees its tables, and columns that it cannot read cannot be exposed', async () => {
    const narrow = await look(shop, 'vitrine_oracle', 'oracle-pw')
    assert.ok(!names(narrow).includes('private.salaries'))
    assert.ok(!names(narrow).includes('public.api_keys'))
    const customers = table(narrow, 'customers').columns
    assert.deepEqual(
      customers.filter((one) => one.unexposable === null).map((one) => one.name),
      ['id', 'name', 'country', 'created_at'],
    )
    assert.match(column(narrow, 'customers', 'ssn').unexposable ?? '', /may not read/)
    assert.equal(column(narrow, 'customers', 'id').primaryKey, true)
    assert.deepEqual(column(narrow, 'orders', 'customer_id').references?.table, 'customers')
    assert.match(table(narrow, 'v_customer_public').warnings.join(), /rights of its owner postgres/)
  })

  test('the capture names server, database, path, extensions and types', () => {
    const held = capture(seen)
    assert.ok(held.serverVersion >= 140000)
    assert.equal(held.database, shop)
    assert.deepEqual(held.searchPath, ['public'])
    // public is not trusted, because dblink, user-defined functions and a fake operator ~~* are in it.
    assert.deepEqual(held.trustedSchemas, [])
    const type = (name: string): unknown => held.types.find((one) => one.name === name)?.refused
    assert.equal(type('order_status'), null)
    assert.match(String(type('leaky_dom')), /CHECK/)
    assert.match(String(type('secret_ref')), /the cast \(integer AS public\.secret_ref\) with function/)
    assert.equal(type('customers'), undefined)
  })
})

test('the captured search_path is the login’s own, not the session’s fixed one', async () => {
  const name = await postgres.createDatabase(
    'path',
    `CREATE SCHEMA "Sales Ops"; CREATE SCHEMA extra; CREATE TYPE extra.mood AS ENUM ('ok');
    CREATE TABLE "Sales Ops".t (m extra.mood, ms extra.mood[]);`,
  )
  await postgres.query('postgres', `ALTER DATABASE "${name}" SET search_path = nowhere, extra, "Sales Ops"`)
  for (const options of [undefined, '-c search_path=pg_catalog']) {
    await using session = await askAs(postgres, name, undefined, undefined, options)
    const seen = await introspect(session.ask, AbortSignal.timeout(60_000))
    assert.deepEqual(capture(seen).searchPath, ['extra', 'Sales Ops'])
    assert.deepEqual(
      table(seen, 't').columns.map((one) => one.type),
      ['mood', 'mood[]'],
    )
  }
})

test('introspection handles generated, dropped, quoted and domain columns, and unusual primary keys', async () => {
  const seen = await fill(
    'odd',
    `CREATE DOMAIN never_null AS text NOT NULL; CREATE DOMAIN above AS never_null; CREATE DOMAIN mail AS text CHECK (VALUE ~ '@');
    CREATE TABLE t (gone int, "a.b" int, id int, "Id" int, g int GENERATED ALWAYS AS (id + 1) STORED, d above, m mail);
    ALTER TABLE t DROP gone, ADD PRIMARY KEY ("Id", id) INCLUDE (g);
    CREATE TABLE later (a int PRIMARY KEY DEFERRABLE, b int);
    CREATE TABLE p (a int PRIMARY KEY) PARTITION BY LIST (a); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
    CREATE TABLE f (a int REFERENCES p); CREATE TEMP TABLE mine (a int);
    CREATE TABLE pf (a int REFERENCES f2k) PARTITION BY LIST (a); CREATE TABLE pf1 PARTITION OF pf FOR VALUES IN (1);
    CREATE VIEW v AS SELECT * FROM t; CREATE UNLOGGED TABLE u (a int);`.replace(
      'CREATE TABLE pf (a int REFERENCES f2k)',
      'CREATE TABLE f2k (a int PRIMARY KEY); CREATE TABLE pf (a int REFERENCES f2k)',
    ),
  )
  assert.deepEqual(
    table(seen, 't').columns.map((one) => [one.name, one.nullable, one.primaryKey]),
    [
      ['a.b', true, false],
      ['id', false, true],
      ['Id', false, true],
      ['g', true, false],
      ['d', false, false],
      ['m', true, false],
    ],
  )
  assert.deepEqual(detail(table(seen, 't')).primaryKey, ['Id', 'id'])
  assert.equal(column(seen, 'later', 'a').primaryKey, true)
  // GROUP BY of a deferrable key does not cover the other columns.
  assert.deepEqual(detail(table(seen, 'later')).primaryKey, [])
  assert.equal(column(seen, 'f', 'a').references?.table, 'p')
  assert.equal(column(seen, 'pf', 'a').references?.table, 'f2k')
  assert.equal(column(seen, 'pf1', 'a').references?.table, 'f2k')
  assert.equal(column(seen, 't', 'm').unexposable, null, 'reading a domain with a CHECK runs nothing')
  assert.equal(table(seen, 't').estimatedRows, null)
  assert.ok(!names(seen).some((name) => name.endsWith('.mine')))
})

test('introspection decides which types a query may name, and which columns cannot be exposed', async () => {
  const seen = await fill(
    'types',
    `CREATE TYPE e AS ENUM ('a'); CREATE DOMAIN plain AS e; CREATE DOMAIN checked AS int CHECK (VALUE > 0);
    CREATE TYPE c AS (x int, y text); CREATE TYPE deep AS (c c, es e[]); CREATE TYPE bad AS (n checked);
    CREATE TYPE fr AS RANGE (subtype = float8, subtype_diff = float8mi);
    CREATE FUNCTION own_diff(int, int) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT 1.0::float8';
    CREATE TYPE own AS RANGE (subtype = int, subtype_diff = own_diff);
    CREATE TABLE secret (token text); CREATE TABLE unused (a int);
    CREATE TABLE t (e e, p plain, k checked, c c, ds deep[], b bad, r fr, o own, om own_multirange, s secret, ss secret[]);
    CREATE TYPE told AS ENUM ('x'); CREATE FUNCTION leak(told) RETURNS text LANGUAGE sql AS $$ SELECT 'y' $$;
    CREATE CAST (told AS text) WITH FUNCTION leak(told);
    CREATE TABLE u (a told, b told[]); CREATE TYPE quiet AS ENUM ('x'); CREATE CAST (text AS quiet) WITH INOUT AS IMPLICIT;
    CREATE TABLE w (q quiet); CREATE TYPE alias;
    CREATE FUNCTION alias_in(cstring) RETURNS alias STRICT IMMUTABLE LANGUAGE internal AS 'int8in';
    CREATE FUNCTION alias_out(alias) RETURNS cstring STRICT IMMUTABLE LANGUAGE internal AS 'int8out';
    CREATE FUNCTION chk(text) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT true';
    CREATE DOMAIN leaky AS text CHECK (chk(VALUE)); CREATE DOMAIN above_leaky AS leaky; CREATE TYPE cl AS (l leaky, n int);
    CREATE DOMAIN reads AS text CHECK (current_setting(VALUE, true) IS NULL);
    CREATE DOMAIN casts AS text CHECK (VALUE::leaky IS NOT NULL); CREATE DOMAIN day AS date CHECK (VALUE <= now());
    CREATE DOMAIN mail AS text CHECK (VALUE ~ '@' AND length(lower(VALUE)) < 99 AND VALUE IN ('a@', 'b@'));
    CREATE TABLE y (l leaky, ls leaky[], u above_leaky, c cl, r reads, k casts, d day, m mail, ms mail[]);
    CREATE TYPE alias (INPUT = alias_in, OUTPUT = alias_out, LIKE = int8); CREATE TABLE x (a alias);`,
  )
  const types = new Map(capture(seen).types.map((one) => [one.name, one]))
  const refused = (name: string): boolean => types.get(name)?.refused !== null
  for (const name of ['e', '_e', 'plain', 'c', '_c', 'deep', 'fr', 'fmultirange', 'quiet']) {
    if (types.has(name)) assert.equal(types.get(name)?.refused, null, name)
  }
  for (const name of ['checked', '_checked', 'bad', 'own', 'own_multirange', 'secret', '_secret', 'told', '_told']) {
    assert.ok(types.has(name), name)
    assert.ok(refused(name), name)
  }
  assert.ok(!types.has('unused'), 'unused row types are left out')
  assert.deepEqual(types.get('secret')?.attributes, [], 'a row type shows no columns')
  assert.deepEqual(types.get('deep')?.attributes, [
    { name: 'c', type: { schema: 'public', name: 'c' }, typeOid: types.get('c')?.oid },
    { name: 'es', type: { schema: 'public', name: '_e' }, typeOid: types.get('_e')?.oid },
  ])
  assert.deepEqual(types.get('plain')?.of, { schema: 'public', name: 'e' })
  assert.deepEqual(types.get('checked')?.of, { schema: 'pg_catalog', name: 'int4' })
  const closed = table(seen, 't').columns.filter((one) => one.unexposable !== null)
  assert.deepEqual(
    closed.map((one) => one.name),
    ['o', 'om', 's', 'ss'],
  )
  assert.match(column(seen, 't', 'o').unexposable ?? '', /own_diff/)
  assert.match(column(seen, 't', 's').unexposable ?? '', /row type/)
  assert.match(column(seen, 'u', 'a').unexposable ?? '', /cast \(public\.told AS text\) with function public\.leak/)
  assert.match(column(seen, 'u', 'b').unexposable ?? '', /cast/)
  assert.deepEqual(
    table(seen, 'y')
      .columns.filter((one) => one.unexposable === null)
      .map((one) => one.name),
    ['l', 'ls', 'u', 'r', 'k', 'd', 'm', 'ms'],
    'a literal must not run a CHECK that could read something: a column of the domain is read as its base type,\n' +
      'but a column inside a row would give a literal the domain as its type',
  )
  assert.match(column(seen, 'y', 'c').unexposable ?? '', /CHECK of the domain public\.leaky calls public\.chk\(text\)/)
  assert.ok(refused('mail'))
  assert.ok(refused('alias'))
  assert.equal(
    column(seen, 'x', 'a').unexposable,
    null,
    'only superusers can install compiled code, so the column may be read',
  )
  assert.equal(column(seen, 'w', 'q').unexposable, null, 'a cast WITH INOUT calls no user-defined function')
})

test('a column of a type that names objects can be exposed, but not a row or range of such a type', async () => {
  const seen = await fill(
    'names',
    `CREATE DOMAIN rel AS regclass; CREATE TYPE holder AS (r regclass, n int); CREATE TYPE grant_ AS (a aclitem[]);
    CREATE TYPE rels AS RANGE (subtype = regclass); CREATE DOMAIN held AS holder;
    CREATE TABLE t (r regclass, rs regrole[], d rel, ds rel[], h holder, hs holder[], g grant_, ra rels, hd held);`,
  )
  const types = new Map(capture(seen).types.map((one) => [one.name, one]))
  for (const name of ['rel', '_rel', 'holder', '_holder', 'grant_', 'rels', 'held']) {
    assert.notEqual(types.get(name)?.refused ?? null, null, name)
  }
  assert.deepEqual(
    table(seen, 't')
      .columns.filter((one) => one.unexposable === null)
      .map((one) => one.name),
    ['r', 'rs', 'd', 'ds'],
  )
  assert.match(column(seen, 't', 'hs').unexposable ?? '', /holder contains names of objects/)
})

test('introspection fails for a user-defined cast or operator class on built-in types, and names it', async () => {
  const cast = `CREATE FUNCTION leak(jsonb) RETURNS date LANGUAGE sql AS 'SELECT current_date'; CREATE CAST (jsonb AS date) WITH FUNCTION leak(jsonb)`
  await assert.rejects(fill('casts', cast), /the cast \(jsonb AS date\) with function public\.leak\(jsonb\)/)
  const cmp = `CREATE FUNCTION lt(point, point) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT true';
    CREATE FUNCTION cmp(point, point) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 0';
    CREATE OPERATOR < (LEFTARG = point, RIGHTARG = point, FUNCTION = lt);
    CREATE OPERATOR CLASS points DEFAULT FOR TYPE point USING btree AS OPERATOR 1 <, FUNCTION 1 cmp(point, point);`
  await assert.rejects(fill('classes', cmp), { code: 'DATASOURCE_UNAVAILABLE', message: /public\.points for point/ })
})

test('a trusted extension’s schema may be on the search_path, unless it has other functions or PUBLIC may create there', async (t) => {
  const available = await postgres.query('postgres', `SELECT 1 FROM pg_available_extensions WHERE name = 'citext'`)
  if (available.length === 0) return t.skip('this server has no citext')
  const seen = await fill(
    'extensions',
    `CREATE SCHEMA ext; CREATE EXTENSION citext SCHEMA ext; CREATE EXTENSION hstore; CREATE TABLE t (a ext.citext, h hstore);
    CREATE SCHEMA open; GRANT CREATE ON SCHEMA open TO PUBLIC; CREATE EXTENSION pg_trgm SCHEMA open;
    CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE SCHEMA dirty; CREATE EXTENSION dblink SCHEMA dirty;`,
  )
  assert.deepEqual(capture(seen).trustedSchemas, ['ext'])
  const citext = capture(seen).extensions.find((one) => one.name === 'citext')
  assert.ok(citext?.trusted && citext.functions.includes('citext_eq') && citext.operators.includes('~~*'))
  assert.equal(capture(seen).extensions.find((one) => one.name === 'dblink')?.trusted, false)
  assert.deepEqual(
    table(seen, 't').columns.map((one) => [one.type, one.unexposable]),
    [
      ['ext.citext', null],
      ['hstore', null],
    ],
  )
  // Without the function, public is trusted: it contains only tables and objects of the extension.
  const name = await postgres.createDatabase(
    'extensions2',
    'REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE EXTENSION hstore; CREATE TABLE t (h hstore)',
  )
  assert.deepEqual(capture(await look(name)).trustedSchemas, ['public'])
})

test('a view has warnings about its own definition and about the views that it reads', async () => {
  const seen = await fill(
    'views',
    `CREATE TABLE t (a int); CREATE FUNCTION definer() RETURNS int LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT 1';
    CREATE FUNCTION loose() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
    CREATE VIEW one AS SELECT a, definer() AS d FROM t; CREATE VIEW two AS SELECT loose() AS l, one.* FROM one;
    CREATE VIEW built AS SELECT nextval('s') AS n FROM t; CREATE VIEW fine AS SELECT random() AS r, lower('A') AS l, count(a) FROM t;
    CREATE TABLE policed (a int); ALTER TABLE policed ENABLE ROW LEVEL SECURITY; CREATE VIEW rows AS SELECT a FROM policed;
    CREATE FOREIGN DATA WRAPPER w; CREATE SERVER away FOREIGN DATA WRAPPER w; CREATE FOREIGN TABLE far (a int) SERVER away;
    CREATE VIEW through AS SELECT a FROM far;`.replace('CREATE VIEW built', 'CREATE SEQUENCE s; CREATE VIEW built'),
  )
  const warnings = (name: string): string => table(seen, name).warnings.join('\n')
  assert.match(warnings('one'), /public\.definer\(\), a SECURITY DEFINER/)
  assert.match(warnings('two'), /public\.loose\(\), a volatile[^]*|public\.definer\(\)/)
  assert.match(warnings('two'), /public\.definer\(\)/)
  assert.match(warnings('built'), /pg_catalog\.nextval\(\)/)
  assert.equal(warnings('fine'), '')
  assert.match(warnings('rows'), /row policies of public\.policed/)
  assert.match(warnings('through'), /foreign table public\.far/)
  assert.match(warnings('far'), /server away/)
  assert.equal(table(seen, 'far').kind, 'foreign table')
})
