// A problem costs many times as much as a value. So a schema stops reading an invalid body after a limited number of
// problems.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z, type ZodType } from 'zod'
import type { Route } from './route-type.ts'
import { ROUTES } from './key-routes.ts'
import { SESSION_ROUTES } from './signed-in-routes.ts'

const many = <T>(n: number, make: (k: number) => T): T[] => Array.from({ length: n }, (_, k) => make(k))
const WRONG: Readonly<Record<string, unknown>> = {
  'a list of objects': many(5_000, (k) => ({ [`k${k}`]: 1 })),
  'a list of nulls': many(5_000, () => null),
  'a list of long texts': many(5_000, () => 'x'.repeat(2_000)),
  'an object of numbers': Object.fromEntries(many(5_000, (k) => [`k${k}`, k])),
  'an object of objects': Object.fromEntries(many(5_000, (k) => [`k${k}`, { a: 1, b: 2 }])),
}

function fieldsOf(body: ZodType): readonly string[] {
  return body instanceof z.ZodObject ? Object.keys(body.shape) : []
}

const routes: Readonly<Record<string, Route>> = { ...ROUTES, ...SESSION_ROUTES }
/** Routes whose schemas read many values. Other routes accept few values, or a driver reads their body. */
const large = Object.entries(routes).filter(([, route]) => route.valuesMax !== undefined && route.rawBody !== true)

describe('schemas of large bodies', () => {
  test('only bodies of the exposure, the documentation, profiles and access lists may have many values', () => {
    assert.deepEqual(large.map(([id]) => id).sort(), [
      'acceptDocumentation',
      'generateDocumentation',
      'previewExposure',
      'profileDatasource',
      'putAccess',
      'putDocumentation',
      'putExposure',
    ])
  })

  for (const [id, { body }] of large) {
    if (body === undefined) continue
    for (const field of fieldsOf(body)) {
      test(`the schema of ${id} stops reading soon if every element of ${field} is wrong`, () => {
        for (const [title, value] of Object.entries(WRONG)) {
          const { error } = body.safeParse({ [field]: value })
          assert.ok(error !== undefined, title)
          assert.ok(error.issues.length < 200, `${title}: ${error.issues.length} problems`)
        }
      })
    }
  }
})
