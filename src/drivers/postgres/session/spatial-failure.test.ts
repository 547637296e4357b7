// Mistakes in spatial queries must be explained. The messages are from PostGIS 3.3, which reports them as internal
// errors.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failure } from './failure.ts'
import { DatabaseError } from './protocol-messages.ts'

const SPATIAL = 'SELECT "public"."st_x"("t1"."g") FROM (SELECT "g" FROM "public"."places" AS "t0") AS "t1"("g")'
const CAST = `SELECT CAST('POINT(1' AS "public"."geometry") AS "geometry"`
const OTHER = 'SELECT "t1"."st" FROM (SELECT "st" FROM "public"."places" AS "t0") AS "t1"("st")'

function explained(message: string, text: string, code = 'XX000'): readonly [string, string] {
  const fields = new Map(Object.entries({ M: message, C: code }))
  const { message: shown, extra } = failure(new DatabaseError(fields), { text, names: new Map() })
  return [shown, String(extra['hint'])]
}

const CASES: readonly (readonly [string, RegExp, RegExp])[] = [
  [
    'ST_Distance: Operation on mixed SRID geometries (Point, 4326) != (Point, 3857)',
    /different coordinate/,
    /st_transform/,
  ],
  ['ST_Transform: Input geometry has unknown (0) SRID', /SRID.* is not known/, /st_setsrid/],
  ['Cannot find SRID (990001) in spatial_ref_sys', /SRID.* is not known/, /st_setsrid/],
  ['parse error - invalid geometry', /not a valid geometry/, /WKT/],
  ['invalid GeoJson representation', /not a valid geometry/, /WKT/],
  ['unexpected end of data (at offset 1)', /not a valid geometry/, /WKT/],
  ['WKB structure does not match expected size!', /not a valid geometry/, /WKT/],
  ['geometry requires more points', /not a valid geometry/, /WKT/],
  ['transform: Invalid coordinate (2049)', /coordinates that are not valid/, /longitude first/],
  ['Geohash requires inputs in decimal degrees, got (1000 2, 1000 2).', /coordinates that are not valid/, /longitude/],
  ['Argument to ST_X() must have type POINT', /does not accept/, /st_geometrytype/],
  ['Input geometries must be points or lines', /does not accept/, /st_geometrytype/],
  ["line_interpolate_point: 2nd arg isn't within [0,1]", /does not accept/, /st_geometrytype/],
  ['Shell is not a line', /does not accept/, /st_geometrytype/],
]

for (const [message, sentence, hint] of CASES) {
  test(`spatialFailure() explains ${message}`, () => {
    for (const text of [SPATIAL, CAST]) {
      const [shown, advice] = explained(message, text)
      assert.match(shown, sentence)
      assert.match(advice, hint)
      assert.doesNotMatch(shown + advice, /990001|1000/)
    }
  })
}

test('spatialFailure() does not explain other internal errors', () => {
  const internal = 'The database had an internal error.'
  assert.equal(explained('cache lookup failed for type 1', SPATIAL)[0], internal)
  assert.equal(explained('Shell is not a line', OTHER)[0], internal)
  assert.notEqual(
    explained('parse error - invalid geometry', SPATIAL, '22P02')[0],
    explained(CASES[3]?.[0] ?? '', SPATIAL)[0],
  )
})
