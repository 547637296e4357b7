import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shop } from '../../../../test/support/postgres-catalog.ts'
import { AppError } from '../../../errors.ts'
import { exposedOf } from './exposed.ts'
import { bindParams } from './param-values.ts'

test('at most 20 wrong parameters are reported, because each hint takes time', () => {
  const exposed = exposedOf(shop())
  const values = Array.from({ length: 1_000 }, () => ({ type: 'nosuch', value: 1 }))
  let lookUps = 0
  const bind = (): unknown => bindParams({ values, json: '' }, () => (lookUps++, exposed))
  assert.throws(bind, AppError)
  assert.equal(lookUps, 20)
})
