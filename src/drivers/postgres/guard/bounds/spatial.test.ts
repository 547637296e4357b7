// Tests what the guard prints and refuses for PostGIS, with a captured catalog: PostGIS is not among the test engines.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { shop, table, type, extension } from '../../../../../test/support/postgres-catalog.ts'
import { exposedOf } from '../exposed.ts'
import { bindParams } from '../param-values.ts'
import { openGuard, say, type Guard } from '../../../../../test/support/postgres-guard.ts'

const FUNCTIONS =
  'geography geometry st_area st_asgeojson st_astext st_buffer st_clusterdbscan st_collect st_contains st_distance st_dump st_dwithin st_geohash st_geomfromewkt st_geomfromgeojson st_geomfromtext st_geomfromwkb st_intersection st_intersects st_length st_makeenvelope st_makeline st_makepoint st_point st_setsrid st_simplify st_srid st_transform st_union st_within st_x st_y'
const places = shop(
  {
    extensions: [
      extension('postgis', '3.3.2', { schema: 'gis', functions: FUNCTIONS.split(' '), operators: ['<->', '&&'] }),
      extension('hstore', '1.8', { schema: 'gis', functions: ['hstore'], operators: ['#=', '?'] }),
    ],
    trustedSchemas: ['gis'],
    types: [
      type('public.order_status', 'enum'),
      type('gis.hstore', 'base', { extension: 'hstore' }),
      type('gis.geometry', 'base', { extension: 'postgis' }),
      type('gis.geography', 'base', { extension: 'postgis' }),
      type('gis._geometry', 'array', { extension: 'postgis', of: 'gis.geometry' }),
      type('public.spot', 'domain', { of: 'gis.geometry' }),
      type('public.pin', 'composite', { attributes: ['name text', 'g gis.geometry'] }),
    ],
  },
  [
    table('places', [
      ...['id int4', 'g gis.geometry', 'gg gis.geography', 'wkt text', 'lon float8', 'lat float8'],
      ...['spot public.spot', 'pin public.pin', 'bytes bytea'],
    ]),
  ],
)

let guard: Guard
before(async () => {
  guard = await openGuard()
})
after(() => guard[Symbol.asyncDispose]())

describe('allowed queries of PostGIS', () => {
  for (const sql of [
    'SELECT st_x(g), st_y(g), st_astext(g), st_asgeojson(g), st_asgeojson(g, 6), st_asgeojson(g, 6, 1) FROM places',
    'SELECT st_distance(g, st_setsrid(st_makepoint(lon, lat + 1), 4326)) FROM places',
    'SELECT * FROM places WHERE st_dwithin(gg, st_setsrid(st_makepoint(13.4, 52.5), 4326)::geography, 1000)',
    "SELECT * FROM places WHERE st_within(g, 'SRID=4326;POLYGON((0 0,1 0,1 1,0 0))')",
    'SELECT a.id FROM places a JOIN places b ON st_contains(a.g, b.g)',
    'SELECT id FROM places ORDER BY g <-> st_point(1, 2) LIMIT 5',
    'SELECT st_area(gg), st_length(g::geography), st_srid(g) FROM places',
    'SELECT st_transform(g, 3857), st_area(st_transform(g, 25833)) FROM places',
    "SELECT st_geomfromtext('POINT(' || lon || ' ' || lat || ')', 4326) FROM places",
    "SELECT wkt::gis.geometry, 'POINT(1 1)'::gis.geometry, 'POINT(1 1)'::gis.geometry(Point, 4326) FROM places",
    'SELECT st_astext(st_collect(g)), st_astext(st_makeline(array_agg(g ORDER BY id))) FROM places',
    'SELECT st_astext((st_dump(g)).geom), st_geohash(g), st_geohash(g, 8), to_json(g) FROM places',
    'SELECT st_intersects(g, st_makeenvelope(0, 0, 1, 1, 4326)), st_area(coalesce(g, st_point(1, 1))) FROM places',
    'SELECT st_astext(st_geomfromgeojson(\'{"type":"Point","coordinates":[1,1]}\'))',
    "SELECT '00d41d8cd98f00b204e9800998ecf8427e', 'srid' FROM places",
    "SELECT coalesce(g, 'POINT(1 1)'), CASE WHEN id > 1 THEN g END, coalesce(g, NULL) FROM places WHERE g IN ('POINT(1 1)', g)",
    'SELECT g FROM places UNION SELECT NULL UNION SELECT st_makepoint(lon, lat) FROM places',
    'SELECT * FROM (VALUES (st_point(1, 1)), (NULL)) v(p) JOIN places ON p && g',
    "SELECT array_append(array_agg(g), 'POINT(1 1)'), array_position(array_agg(g), min(g)), array_remove(array_agg(g), NULL) FROM places",
    'SELECT lag(g, id) OVER w, lead(g, 1, g) OVER w, lag(upper(wkt), 1, lower(wkt)) OVER w FROM places WINDOW w AS (ORDER BY id)',
    "SELECT st_astext(mode() WITHIN GROUP (ORDER BY g)), rank('x') WITHIN GROUP (ORDER BY upper(wkt)) FROM places",
    "SELECT concat(g, upper(wkt)), json_build_object('g', g, 'w', upper(wkt)), num_nulls(g, upper(wkt)) FROM places",
    "SELECT upper(wkt) || 'x' || lower(wkt), nullif(upper(wkt), lower(wkt)), array_append(ARRAY[upper(wkt)], lower(wkt)) FROM places",
    'SELECT bytes, spot, st_x(spot), pin, coalesce(pin, pin), pin::pin FROM places',
  ]) {
    test(`a PostGIS query is allowed: ${sql}`, async () => {
      const verdict = await guard.judge(sql, places)
      assert.equal(verdict.kind, 'confined', say(verdict))
    })
  }
})

const BYTES = "decode('01' || wkt, 'hex')"

const CRS = '{"type":"Point","coordinates":[1,1],"\\u0063rs":{"type":"name","properties":{"name":"a:1"}}}'

describe('queries of PostGIS that could read spatial_ref_sys or a file, or that have no bound', () => {
  for (const sql of [
    'SELECT st_asgeojson(st_setsrid(g, 990001)) FROM places',
    'SELECT st_asgeojson(g, 9, 4) FROM places',
    'SELECT st_asgeojson(g, 9, id) FROM places',
    'SELECT st_asgeojson(places) FROM places',
    'SELECT st_setsrid(g, id) FROM places',
    "SELECT st_transform(g, 'EPSG:4326', '+init=/tmp/file:section') FROM places",
    "SELECT st_transform(g, '+proj=longlat +nadgrids=/tmp/fifo') FROM places",
    'SELECT st_transform(g, 990001) FROM places',
    "SELECT to_json('SRID=990001;POINT(1 1)'::gis.geometry)",
    "SELECT to_json(coalesce(g, 'srid=990001;POINT(1 1)')) FROM places",
    "SELECT to_json('0101000020311B0F00000000000000F03F000000000000F03F'::gis.geometry)",
    "SELECT to_json('00200003E9000F1B313FF00000000000003FF00000000000003FF0000000000000'::gis.geometry)",
    `SELECT '{"S\\RID=990001;POINT(1 1)"}'::gis.geometry[]`,
    "SELECT ('SRID=' || 990001 || ';POINT(1 1)')::gis.geometry",
    "SELECT ARRAY[g, 'SRID=' || 990001 || ';POINT(1 1)']::gis.geometry[] FROM places",
    "SELECT st_asgeojson('SRID=' || 990001 || ';POINT(1 1)')",
    "SELECT st_geomfromtext('SRID=' || 990001 || ';POINT(1 1)')",
    "SELECT st_geomfromewkt('SRID=' || id || ';POINT(1 1)') FROM places",
    "SELECT st_geomfromwkb('\\001\\001')",
    `SELECT st_geomfromgeojson('${CRS}')`,
    `SELECT '${CRS}'::gis.geometry`,
    "SELECT x.g FROM jsonb_to_record(jsonb_build_object('g', 'SRI' || 'D=990001;POINT(1 1)')) AS x(g gis.geometry)",
    "SELECT jsonb_populate_record(places, jsonb_build_object('g', 'SRI' || 'D=990001;POINT(1 1)')) FROM places",
    "SELECT 'POINT(1 1)'::gis.geography(Point, 990001)",
    ...['coalesce(g, TEXT)', 'CASE WHEN id > 1 THEN g ELSE TEXT END', 'greatest(g, TEXT)', 'nullif(g, TEXT)'].map(
      (mixed) => `SELECT to_json(${mixed.replace('TEXT', "wkt || ''")}) FROM places`,
    ),
    "SELECT to_json(ARRAY[g, wkt || '']) FROM places",
    "SELECT to_json(x) FROM (SELECT g FROM places UNION ALL SELECT wkt || '' FROM places) q(x)",
    "SELECT to_json(x) FROM places, LATERAL (VALUES (g), (wkt || '')) v(x)",
    "SELECT gg OPERATOR(gis.&&) decode('01' || wkt, 'hex') FROM places",
    ...[
      ...[
        'array_append(ARRAY[g], BYTES)',
        'array_append(NULL, g) || BYTES',
        'array_cat(ARRAY[g], ARRAY[BYTES])',
        'array_prepend(BYTES, ARRAY[g])',
      ],
      ...[
        'array_position(ARRAY[g], BYTES)',
        'array_remove(ARRAY[g], BYTES)',
        'array_replace(ARRAY[g], g, BYTES)',
        'lag(g, 1, BYTES) OVER ()',
      ],
      ...[
        'lead(BYTES, id, g) OVER ()',
        'width_bucket(g, ARRAY[BYTES])',
        'rank(BYTES) WITHIN GROUP (ORDER BY gg)',
        'ARRAY[mode() WITHIN GROUP (ORDER BY g), BYTES]',
      ],
      ...[
        '(array_fill(g, ARRAY[1]) || ARRAY[g]) || BYTES',
        'ARRAY[array_prepend(g, NULL), ARRAY[BYTES]]',
        'ARRAY[nullif(NULL, g), BYTES]',
      ],
      ...[
        'percentile_disc(ARRAY[0.5]) WITHIN GROUP (ORDER BY g) || BYTES',
        'ARRAY[coalesce(wkt, g), BYTES]',
        'CASE g WHEN BYTES THEN 1 END',
      ],
      ...[
        'ARRAY[((ARRAY[g] || g) || g)[1], BYTES]',
        'ARRAY[(array_append(NULL, g))[1], BYTES]',
        'ARRAY[spot, BYTES]',
        'ARRAY[lag(bytes, 1, g) OVER (), BYTES]',
      ],
    ].map((mixed) => `SELECT ${mixed.replace('BYTES', BYTES)} FROM places`),
    `SELECT ARRAY[x, ${BYTES}] FROM (SELECT wkt AS x FROM places UNION ALL SELECT g FROM places) q`,
    `SELECT q::pin FROM (SELECT g AS a, ${BYTES} AS b FROM places) q`,
    `SELECT ARRAY[x, ${BYTES}] FROM places, LATERAL (VALUES (wkt), (g)) v(x)`,
    `SELECT ARRAY[x, ${BYTES}] FROM places p, unnest(array_append(NULL, p.g)) x`,
    `SELECT ARRAY[x, ${BYTES}] FROM (SELECT bytes AS x FROM places) a JOIN (SELECT g AS x FROM places) b USING (x)`,
    `SELECT to_json(g) FROM (SELECT g FROM places UNION ALL (SELECT NULL UNION ALL SELECT ${BYTES} FROM places)) q`,
    `SELECT to_json(y) FROM (SELECT (array_agg(g) || g)[1] AS y FROM places GROUP BY g UNION ALL SELECT ${BYTES} FROM places) q`,
    `WITH RECURSIVE r AS (SELECT NULL::geometry AS y UNION ALL (SELECT NULL UNION ALL SELECT ${BYTES} FROM places)) SELECT to_json(y) FROM r`,
    `WITH v AS (SELECT NULL AS y UNION ALL SELECT ${BYTES} FROM places) SELECT to_json(z) FROM (SELECT g AS z FROM places UNION ALL SELECT y FROM v) q`,
    `SELECT to_json(z) FROM (SELECT g AS z FROM places UNION ALL SELECT v.y FROM places, LATERAL (VALUES (NULL), (${BYTES})) v(y)) q`,
    `SELECT to_json(z) FROM (SELECT g AS z FROM places UNION ALL SELECT y FROM (SELECT NULL UNION ALL SELECT ${BYTES} FROM places) q(y)) q`,
    `SELECT to_json(z) FROM (VALUES ((SELECT g FROM places)), ((SELECT NULL UNION ALL SELECT ${BYTES} FROM places))) v(z)`,
    `SELECT to_json(GREATEST((ARRAY[g] || g)[5], ${BYTES})), COALESCE((ARRAY[g] || g)[5], ${BYTES}) FROM places`,
    `SELECT to_json(CASE WHEN id = 1 THEN ${BYTES} ELSE (ARRAY[g] || ARRAY[g])[1] END) FROM places`,
    `SELECT to_json(y) FROM places, LATERAL (VALUES ((ARRAY[g] || ARRAY[g])[1]), (${BYTES})) v(y)`,
    `SELECT jsonb_agg(x) FROM (SELECT lag(g, 1, ${BYTES}) OVER () AS x FROM places) q`,
    `SELECT to_json(array_append(ARRAY[st_makepoint(1, 1)], set_byte(${BYTES}, 5, id))) FROM places`,
    `SELECT ARRAY[percentile_disc(0.5) WITHIN GROUP (ORDER BY wkt), ${BYTES}] || g FROM places GROUP BY g`,
    `SELECT first_value(x) OVER () FROM (SELECT nth_value(g, 1) OVER () AS x FROM places UNION ALL SELECT ${BYTES} FROM places) q`,
    `SELECT to_json(x) FROM (SELECT max(g) AS x FROM places UNION ALL SELECT ${BYTES} FROM places) q`,
    `SELECT to_json(x) FROM (SELECT any_value(g) AS x FROM places UNION ALL SELECT ${BYTES} FROM places) q`,
    `SELECT to_json(x) FROM (SELECT (array_agg(g))[1] AS x FROM places UNION ALL SELECT ${BYTES} FROM places) q`,
    `SELECT to_json(x) FROM (SELECT (ARRAY(SELECT g FROM places))[1] AS x UNION ALL SELECT ${BYTES} FROM places) q`,
    `SELECT to_json(x) FROM (SELECT (SELECT g FROM places LIMIT 1) AS x UNION ALL SELECT ${BYTES} FROM places) q`,
    `SELECT to_json(x) FROM (SELECT unnest(ARRAY[g]) AS x FROM places UNION ALL SELECT ${BYTES} FROM places) q`,
    `SELECT to_json(x) FROM (SELECT (pin).g AS x FROM places UNION ALL SELECT ${BYTES} FROM places) q`,
    `SELECT to_json(x) FROM (SELECT (p).g AS x FROM places p UNION ALL SELECT ${BYTES} FROM places) q`,
    "SELECT 1 FROM places WHERE g IN (g, wkt || '')",
    "SELECT 1 FROM places WHERE g = ANY (SELECT wkt || '' FROM places)",
    `SELECT to_json(places OPERATOR(gis.#=) ('g=>"SR' || 'ID=990001;POINT(1 1)"')::gis.hstore) FROM places`,
    `SELECT to_json(places #= ('g=>"SR' || 'ID=990001;POINT(1 1)"')::gis.hstore) FROM places`,
    'SELECT st_makeenvelope(0, 0, 1, 1, id) FROM places',
    'SELECT st_point(1, 1, 990001)',
    'SELECT st_setsrid(srid => 990001, geom => g) FROM places',
    'SELECT st_buffer(g, 1, 10000000) FROM places',
    'SELECT st_geohash(g, 1000000000) FROM places',
    'SELECT st_intersection(g, g) FROM places',
    'SELECT st_union(g) FROM places',
    'SELECT st_clusterdbscan(g, 1, 1) OVER () FROM places',
  ]) {
    test(`a PostGIS query is refused: ${sql}`, async () => {
      const verdict = await guard.judge(sql, places)
      assert.equal(verdict.kind, 'denied', say(verdict))
      assert.match(verdict.kind === 'denied' ? verdict.hint : '', /\.$/)
    })
  }

  test('a parameter with an SRID that is not listed is refused', () => {
    for (const value of ['SRID=990001;POINT(1 1)', { type: 'gis.geometry', value: 'SRID=990001;POINT(1 1)' }]) {
      assert.throws(() => bindParams({ json: '[]', values: [value] }, () => exposedOf(places)), /SRID/)
    }
  })
})

test('the options of st_asgeojson are printed, and a value that the query makes is bounded', async () => {
  assert.match(
    say(await guard.judge('SELECT st_asgeojson(g) FROM places', places)),
    /"st_asgeojson"\("t1"\."g", 9, 0\)/,
  )
  const made = await guard.judge('SELECT st_contains(g, st_makeline(array_agg(g))) FROM places GROUP BY g', places)
  assert.match(say(made), /octet_length/)
  const joined = await guard.judge('SELECT 1 FROM places a JOIN places b ON st_contains(a.g, b.g)', places)
  assert.doesNotMatch(say(joined), /octet_length/)
})

describe('an aggregate of PostGIS that keeps all rows', () => {
  const printed = async (sql: string): Promise<string> => say(await guard.judge(sql, places))

  for (const sql of [
    'SELECT st_makeline(g ORDER BY id) FROM places',
    'SELECT st_collect(DISTINCT st_setsrid(g, 4326)) FILTER (WHERE id > 1) FROM places',
    'SELECT st_collect(g) OVER (ORDER BY id) FROM places',
  ]) {
    test(`the rows of an aggregate of PostGIS are counted: ${sql}`, async () => {
      assert.match(await printed(sql), /vitrine\.collected/)
    })
  }

  for (const sql of [
    'SELECT st_makeline(a.g, b.g) FROM places a, places b',
    'SELECT st_collect(ARRAY[g, g]) FROM places',
  ]) {
    test(`a function of PostGIS with the name of an aggregate is not counted: ${sql}`, async () => {
      assert.doesNotMatch(await printed(sql), /vitrine\.collected/)
    })
  }

  test('the length of a value that an aggregate of PostGIS collects is checked', async () => {
    const measured = (sql: string): Promise<string> => printed(`SELECT ${sql} FROM places`)
    assert.match(await measured('st_length(st_makeline(g))'), /bound: 4194304 collected_value/)
    assert.match(await measured('st_simplify(st_collect(g), 1)'), /bound: 524288 collected_value/)
    assert.doesNotMatch(await measured('st_length(st_makeline(g)) > 5'), /bound: 1048576 collected_value/)
    assert.doesNotMatch(await measured('st_length(st_setsrid(g, 4326))'), /collected_value/)
  })

  test('copies of a value that an aggregate of PostGIS collects count, and && may compare them', async () => {
    const lines = '(SELECT st_makeline(g) AS g FROM places) x'
    const calls = Array.from({ length: 400 }, () => 'st_length(st_setsrid(x.g, 4326))').join(', ')
    const [, limit] = /bound: (\d+) st_makeline/.exec(await printed(`SELECT ${calls} FROM ${lines}`)) ?? []
    assert.ok(Number(limit) < 2_000_000, limit)
    assert.equal(
      (await guard.judge(`SELECT x.g && y.g FROM ${lines}, ${lines.replace('x', 'y')}`, places)).kind,
      'confined',
    )
  })
})

test('a cached query still checks its constants', async () => {
  const pairs = [
    ['SELECT st_setsrid(g, #) FROM places', '4326', '990001'],
    ['SELECT id FROM places WHERE gg IN (#)', "'POINT(1 1)'", "'SRID=990001;POINT(1 1)'"],
    ['SELECT st_geohash(g, #) FROM places', '8', '80'],
    ['SELECT g::gis.geometry(Point, #) FROM places', '4326', '990001'],
  ] as const
  for (const [text, allowed, refused] of pairs) {
    for (let n = 0; n < 3; n++) assert.equal((await guard.judge(text.replace('#', allowed), places)).kind, 'confined')
    assert.equal((await guard.judge(text.replace('#', refused), places)).kind, 'denied', text)
  }
})
