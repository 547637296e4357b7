// Two databases differ only in hidden objects: the first contains them, the second does not. Each query must get the
// same answer from both, apart from the duration. So no answer reveals whether a hidden object exists.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startApp, type TestApp } from '../../support/app.ts'
import { startPostgres, type TestPostgres } from '../../support/postgres.ts'

const SHOWN = `
CREATE TABLE public.notes (id int PRIMARY KEY, title text, secret text, made timestamptz DEFAULT '2026-01-01Z', doc jsonb);
INSERT INTO public.notes VALUES (1, 'one', 'HIDDEN', DEFAULT, '{"a":1}'), (2, 'two', 'HIDDEN', DEFAULT, '{}');
ANALYZE public.notes;
CREATE EXTENSION unaccent;
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'twin_small') THEN CREATE ROLE twin_small LOGIN PASSWORD 'small-pw'; END IF;
END $$;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO twin_small;
GRANT SELECT (id, title, made, doc) ON public.notes TO twin_small;
`

/** Objects in one schema. The login with few rights may use the schema public, but not the schema ghosts. */
const things = (schema: string): string => `
CREATE TABLE ${schema}.ghost (id int, ghostcol text);
CREATE VIEW ${schema}.ghost_view AS SELECT 1 AS id;
CREATE MATERIALIZED VIEW ${schema}.ghost_mat AS SELECT 1 AS id;
CREATE SEQUENCE ${schema}.ghost_seq;
CREATE TYPE ${schema}.ghost_enum AS ENUM ('alive', 'dead');
CREATE TYPE ${schema}.ghost_row AS (a int, b text);
CREATE TYPE ${schema}.ghost_range AS RANGE (subtype = int4);
CREATE DOMAIN ${schema}.ghost_domain AS int CHECK (VALUE > 0);
CREATE DOMAIN ${schema}.ghost_plain AS int;
CREATE FUNCTION ${schema}.ghost_fn(a text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT a';
CREATE FUNCTION ${schema}.ghost_fn(a int, b int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION ${schema}.ghost_rows() RETURNS SETOF int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION ${schema}.ghost_of(n public.notes) RETURNS text LANGUAGE sql AS 'SELECT n.secret';
CREATE PROCEDURE ${schema}.ghost_proc() LANGUAGE sql AS 'SELECT 1';
CREATE AGGREGATE ${schema}.ghost_sum (int) (SFUNC = int4pl, STYPE = int);
CREATE OPERATOR ${schema}.@!! (LEFTARG = int, RIGHTARG = int, FUNCTION = ${schema}.ghost_fn);
CREATE OPERATOR ${schema}.=== (LEFTARG = int, RIGHTARG = int, FUNCTION = ${schema}.ghost_fn);
CREATE COLLATION ${schema}.ghost_coll (LOCALE = 'C');
CREATE COLLATION ${schema}.xx (LOCALE = 'C');
CREATE TEXT SEARCH CONFIGURATION ${schema}.ghost_cfg (COPY = pg_catalog.simple);
CREATE TEXT SEARCH DICTIONARY ${schema}.ghost_dict (TEMPLATE = pg_catalog.simple);
CREATE TEXT SEARCH PARSER ${schema}.ghost_parser (START = prsd_start, GETTOKEN = prsd_nexttoken, END = prsd_end, LEXTYPES = prsd_lextype);
CREATE OPERATOR FAMILY ${schema}.ghost_fam USING btree;
CREATE DEFAULT CONVERSION ${schema}.ghost_conv FOR 'UTF8' TO 'LATIN1' FROM utf8_to_iso8859_1;
`
const HIDDEN = `
CREATE SCHEMA ghosts;
${things('ghosts')}
${things('public').replace('DEFAULT CONVERSION', 'CONVERSION')}
CREATE TABLE public.en_us (id int);
CREATE LANGUAGE ghost_lang HANDLER plpgsql_call_handler;
CREATE CAST (public.ghost_row AS text) WITH INOUT;
CREATE EXTENSION pg_buffercache;
CREATE EXTENSION lo SCHEMA ghosts;
CREATE EXTENSION tsm_system_rows;
CREATE INDEX ghost_index ON public.notes (title);
CREATE STATISTICS public.ghost_stats ON id, title FROM public.notes;
CREATE PUBLICATION ghost_pub;
ALTER TABLE public.notes ADD COLUMN ghostcol text;
CREATE FUNCTION public.ghost_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER ghost_trig AFTER UPDATE ON public.notes FOR EACH ROW EXECUTE FUNCTION public.ghost_trigger();
CREATE SERVER ghost_server FOREIGN DATA WRAPPER ghost_fdw;
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET ghost.setting = ''boo''', current_database()); END $$;
`.replace('CREATE SERVER', 'CREATE FOREIGN DATA WRAPPER ghost_fdw;\nCREATE SERVER')

const EXPOSED = [{ schema: 'public', table: 'notes', columns: ['id', 'title', 'made', 'doc'] }]

/** A name alone, with each of two schemas, and in quotes. */
const spelt = (name: string): string[] => [name, `ghosts.${name}`, `public.${name}`, `"${name}"`, `ghosts."${name}"`]

/** For each kind of object, queries that would reveal whether the object exists. */
const PROBES: Readonly<Record<string, readonly string[]>> = {
  'a text search configuration': spelt('ghost_cfg').flatMap((name) => [
    `SELECT to_tsvector('${name}', title) FROM notes`,
    `SELECT to_tsvector('${name}'::regconfig, title) FROM notes`,
    `SELECT to_tsvector('${name}', doc) FROM notes`,
    `SELECT to_tsquery('${name}', 'a'), plainto_tsquery('${name}', 'a')`,
    `SELECT phraseto_tsquery('${name}', 'a')`,
    `SELECT websearch_to_tsquery('${name}', 'a')`,
    `SELECT ts_headline('${name}', title, to_tsquery('a')) FROM notes`,
    `SELECT ts_headline('${name}', title, to_tsquery('a'), 'MaxWords=5') FROM notes`,
    `SELECT ts_headline('${name}', 'a', 'a')`,
    `SELECT ts_headline('${name}', to_tsquery('a'), 'MaxWords=5')`,
    `SELECT ts_headline('${name}', doc, to_tsquery('a')) FROM notes`,
    `SELECT jsonb_to_tsvector('${name}', doc, '"all"') FROM notes`,
    `SELECT json_to_tsvector('${name}', '{}', '"all"')`,
    `SELECT to_tsvector(NULLIF('${name}', ''), title) FROM notes`,
    `SELECT to_tsvector(COALESCE(NULL, '${name}'), title) FROM notes`,
    `SELECT to_tsvector(CASE WHEN true THEN '${name}' END, title) FROM notes`,
    `SELECT to_tsvector((SELECT '${name}'), title) FROM notes`,
    `SELECT to_tsvector(c, title) FROM notes, (VALUES ('${name}')) v (c)`,
    `SELECT to_tsvector('${name}' COLLATE "C", title) FROM notes`,
    `SELECT ts_headline('${name}' COLLATE "C", title, to_tsquery('a')) FROM notes`,
    `SELECT ts_headline(('${name}' COLLATE "C") COLLATE "C", doc, to_tsquery('a')) FROM notes`,
    `SELECT ts_headline('${name}' COLLATE "C", to_tsquery('a'), 'MaxWords=5')`,
    `SELECT to_tsvector(config => '${name}', document => title) FROM notes`,
    `SELECT to_tsvector(VARIADIC ARRAY['${name}', 'a'])`,
    `SELECT * FROM to_tsvector('${name}', 'a') v`,
    `SELECT pg_catalog.to_tsvector('${name}', 'a')`,
    `SELECT '${name}'::regconfig`,
    `SELECT get_current_ts_config()`,
    `SELECT ts_debug('${name}', 'a')`,
  ]),
  'a text search dictionary': spelt('ghost_dict').flatMap((name) => [
    `SELECT unaccent('${name}', title) FROM notes`,
    `SELECT unaccent('${name}'::regdictionary, title) FROM notes`,
    `SELECT public.unaccent('${name}', title) FROM notes`,
    `SELECT unaccent('${name}' COLLATE "C", title) FROM notes`,
    `SELECT ts_lexize('${name}', 'a')`,
    `SELECT '${name}'::regdictionary`,
  ]),
  'a text search parser': spelt('ghost_parser').flatMap((name) => [
    `SELECT ts_parse('${name}', 'a')`,
    `SELECT ts_token_type('${name}')`,
  ]),
  'a schema': ['ghosts', '"ghosts"'].flatMap((name) => [
    `SELECT * FROM ${name}.anything`,
    `SELECT ${name}.anything(1)`,
    `SELECT 1::${name}.anything`,
    `SELECT 'a' COLLATE ${name}.anything`,
    `SELECT 1 OPERATOR(${name}.+) 2`,
    `SELECT to_tsvector('${name}.anything', 'a')`,
    `SELECT unaccent('${name}.anything', 'a')`,
    `SELECT '${name}'::regnamespace`,
    `SELECT has_schema_privilege('${name}', 'USAGE')`,
    `SELECT id FROM notes ORDER BY id USING OPERATOR(${name}.<)`,
    `SELECT * FROM notes TABLESAMPLE ${name}.bernoulli (5)`,
    `SELECT ${name}.notes.id FROM notes`,
  ]),
  'a table, view, sequence or index': ['ghost', 'ghost_view', 'ghost_mat', 'ghost_seq', 'ghost_index', 'en_us']
    .flatMap(spelt)
    .flatMap((name) => [
      `SELECT * FROM ${name}`,
      `SELECT count(*) FROM notes JOIN ${name} USING (id)`,
      `TABLE ${name}`,
      `SELECT NULL::${name}`,
      `SELECT '${name}'::regclass`,
      `SELECT to_regclass('${name}')`,
      `SELECT nextval('${name}'), currval('${name}')`,
      `SELECT pg_relation_size('${name}')`,
      `SELECT json_populate_record(NULL::${name}, '{}')`,
      `SELECT * FROM json_to_record('{}') AS t (a ${name})`,
      `SELECT ${name}.id FROM notes`,
      `WITH w AS (SELECT * FROM ${name}) SELECT 1`,
    ]),
  'a column': ['ghostcol', '"ghostcol"'].flatMap((name) => [
    `SELECT ${name} FROM notes`,
    `SELECT n.${name} FROM notes n`,
    `SELECT (n).${name} FROM notes n`,
    `SELECT id FROM notes ORDER BY ${name}`,
    `SELECT id FROM notes WHERE ${name} IS NULL`,
    `SELECT a.id FROM notes a JOIN notes b USING (${name})`,
    `SELECT count(*) FROM notes GROUP BY ${name}`,
    `SELECT row_to_json(n) -> '${name.replaceAll('"', '')}' FROM notes n`,
    'SELECT * FROM notes a NATURAL JOIN notes b',
    'SELECT n FROM notes n',
    `SELECT xmin, ctid FROM notes`,
    `SELECT col_description('notes'::regclass, 1)`,
  ]),
  'a type': ['ghost_enum', 'ghost_row', 'ghost_range', 'ghost_domain', 'ghost_plain', 'ghost_multirange', '_ghost_enum']
    .flatMap(spelt)
    .flatMap((name) => [
      `SELECT NULL::${name}`,
      `SELECT '1'::${name}[]`,
      `SELECT CAST(id AS ${name}) FROM notes`,
      `SELECT ${name} 'alive'`,
      `SELECT ${name}('alive')`,
      `SELECT '${name}'::regtype`,
      `SELECT enum_range(NULL::${name})`,
      `SELECT pg_input_is_valid('1', '${name}')`,
      `SELECT * FROM jsonb_to_recordset('[]') AS t (a ${name})`,
      `SELECT * FROM ROWS FROM (json_to_record('{}') AS (a ${name})) t`,
      `SELECT format_type('${name}'::regtype, NULL)`,
    ]),
  'an enum label': ["SELECT 'alive'::ghost_enum", "SELECT 'nope'::ghost_enum", "SELECT 'alive'::ghosts.ghost_enum"],
  'a function, aggregate or procedure': ['ghost_fn', 'ghost_rows', 'ghost_sum', 'ghost_proc', 'ghost_of', 'ghost_trigger']
    .flatMap(spelt)
    .flatMap((name) => [
      `SELECT ${name}(title) FROM notes`,
      `SELECT ${name}()`,
      `SELECT ${name}(1, 2)`,
      `SELECT ${name}(id) OVER () FROM notes`,
      `SELECT * FROM ${name}()`,
      `SELECT ${name}(n) FROM notes n`,
      `SELECT '${name}'::regproc`,
      `SELECT to_regproc('${name}')`,
      `CALL ${name}()`,
    ]),
  'a function written as a column': ['SELECT n.ghost_of FROM notes n', 'SELECT (n).ghost_of FROM notes n'],
  'an operator': ['@!!', '==='].flatMap((symbol) => [
    `SELECT 1 ${symbol} 2`,
    `SELECT ${symbol} 2`,
    `SELECT 1 OPERATOR(public.${symbol}) 2`,
    `SELECT 1 OPERATOR(ghosts.${symbol}) 2`,
    `SELECT 1 OPERATOR(pg_catalog.${symbol}) 2`,
    `SELECT id FROM notes ORDER BY id USING ${symbol}`,
    `SELECT 1 ${symbol} ANY (ARRAY[1])`,
    `SELECT 1 ${symbol} ALL (SELECT 1)`,
    `SELECT '${symbol}'::regoper`,
  ]),
  'a collation': [...spelt('ghost_coll'), 'xx', 'ghosts.xx', 'public.xx', 'pg_catalog.ghost_coll'].flatMap((name) => [
    `SELECT title COLLATE ${name} FROM notes`,
    `SELECT id FROM notes ORDER BY title COLLATE ${name}`,
    `SELECT max(title COLLATE ${name}) FROM notes`,
  ]),
  'a conversion or an encoding': [
    `SELECT convert('\\x41'::bytea, 'UTF8', 'LATIN1')`,
    `SELECT convert('\\x41'::bytea, 'ghost_conv', 'UTF8')`,
    `SELECT convert_from('\\x41'::bytea, 'ghost_conv')`,
    `SELECT to_ascii('a', 'ghost_conv')`,
  ],
  'a setting': ['ghost.setting', 'default_text_search_config'].flatMap((name) => [
    `SHOW ${name}`,
    `SELECT current_setting('${name}', true)`,
  ]),
  'an extension, language, publication, server': [
    'SELECT * FROM pg_buffercache',
    'SELECT pg_buffercache_pages()',
    'SELECT ghosts.lo_oid(1)',
    'SELECT * FROM notes TABLESAMPLE system_rows (1)',
    'SELECT 1::lo',
    'SELECT 1::ghosts.lo',
    "SELECT has_language_privilege('ghost_lang', 'USAGE')",
    "SELECT has_server_privilege('ghost_server', 'USAGE')",
    "SELECT * FROM pg_get_publication_tables('ghost_pub')",
    "SELECT '{}'::ghost_stats",
  ],
  'the catalogs': [
    'SELECT relname FROM pg_class',
    'SELECT * FROM pg_catalog.pg_tables',
    'SELECT table_name FROM information_schema.tables',
    "SELECT obj_description('ghost'::regclass)",
    'SELECT * FROM pg_stats',
  ],
}

/** Queries with a hidden name as the value or the type of a parameter. */
const WITH_PARAMS: readonly (readonly [string, readonly unknown[]])[] = [
  ...['ghost_cfg', 'ghosts.ghost_cfg', 'public.ghost_cfg'].flatMap((name) => [
    ['SELECT to_tsvector($1, title) FROM notes', [name]] as const,
    ['SELECT to_tsvector($1 COLLATE "C", title) FROM notes', [name]] as const,
    ["SELECT ts_headline($1, title, to_tsquery('a')) FROM notes", [name]] as const,
    ['SELECT ts_headline($1 COLLATE "C", title, to_tsquery(\'a\')) FROM notes', [name]] as const,
    ["SELECT ts_headline(title, to_tsquery($1, 'a')) FROM notes", [name]] as const,
    ['SELECT to_tsvector($1, title) FROM notes', [{ type: 'regconfig', value: name }]] as const,
    ['SELECT unaccent($1, title) FROM notes', [name]] as const,
    ['SELECT unaccent($1 COLLATE "C", title) FROM notes', [name]] as const,
    ['SELECT unaccent(CASE WHEN true THEN $1 END, title) FROM notes', [name]] as const,
  ]),
  ...['ghost_enum', 'ghosts.ghost_enum', 'ghost', 'ghosts.ghost_domain', 'ghost_plain', 'regclass', 'lo'].map(
    (type) => ['SELECT $1', [{ type, value: '1' }]] as const,
  ),
]

/** Both databases are on one server and share its roles. So an existing role is compared with a missing one. */
const OF_ROLES: readonly ((role: string) => string)[] = [
  (role) => `SELECT '${role}'::regrole`,
  (role) => `SELECT to_regrole('${role}')`,
  (role) => `SELECT pg_has_role('${role}', 'USAGE')`,
  (role) => `SELECT has_table_privilege('${role}', 'notes', 'SELECT')`,
  (role) => `SET ROLE ${role}`,
  (role) => `SELECT ${role} FROM notes`,
]

const LOGINS = [
  { title: 'a superuser', username: 'postgres', own: true },
  { title: 'a login with few rights', username: 'twin_small', own: false },
]

let server: TestPostgres
let app: TestApp
let key: string
/** The two datasources of each login: first with the hidden objects, then without them. */
const places = new Map<string, readonly [string, string]>()

before(async () => {
  server = await startPostgres({ settings: {} })
  await server.createDatabase('twin_with', SHOWN + HIDDEN)
  await server.createDatabase('twin_without', SHOWN)
  app = await startApp()
  const owner = await app.person('Olga')
  const limits = { queryBudget: { limit: 1_000_000, windowSeconds: 86_400 } }
  const teamId = await app.team(owner, 'Twins', limits)
  for (const { username, own } of LOGINS) {
    const at = async (database: string): Promise<string> => {
      const { host, port } = server
      const login = { username, password: own ? server.password : 'small-pw' }
      const spec = { name: `${database} ${username}`, host, port, database, ...login }
      return `/teams/${teamId}/datasources/${await app.datasource(owner, teamId, spec, EXPOSED)}`
    }
    places.set(username, [await at('twin_with'), await at('twin_without')])
  }
  key = await app.key(owner)
})
after(async () => {
  await app[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
})

async function answerTo(at: string, sql: string, params?: readonly unknown[]): Promise<string> {
  const { status, text } = await app.ask('POST', `${at}/query`, { token: key, body: { sql, ...(params && { params }) } })
  return `${status} ${text.replace(/"durationMs":[\d.]+/, '')}`
}

for (const { title, username } of LOGINS) {
  describe(`for ${title}, a hidden object looks like a missing object`, () => {
    for (const [kind, probes] of Object.entries(PROBES)) {
      test(`a query that names a hidden object is answered as if the object were missing: ${kind}`, async () => {
        const [there, gone] = places.get(username) ?? ['', '']
        for (const sql of probes) {
          const answer = await answerTo(there, sql)
          assert.equal(answer, await answerTo(gone, sql), sql)
          assert.doesNotMatch(answer, /HIDDEN|^409|^5/, sql)
        }
      })
    }

    test('a hidden name in a parameter gets the same answer as a missing one', async () => {
      const [there, gone] = places.get(username) ?? ['', '']
      for (const [sql, params] of WITH_PARAMS) {
        const answer = await answerTo(there, sql, params)
        assert.equal(answer, await answerTo(gone, sql, params), `${sql} ${JSON.stringify(params)}`)
        assert.doesNotMatch(answer, /HIDDEN|^409|^5/, sql)
      }
    })

    test('an existing role gets the same answer as a missing one', async () => {
      const [there] = places.get(username) ?? ['']
      for (const probe of OF_ROLES) {
        const answer = await answerTo(there, probe('twin_small'))
        assert.equal(answer.replaceAll('twin_small', '*'), (await answerTo(there, probe('twin_smxll'))).replaceAll('twin_smxll', '*'))
      }
    })
  })
}
