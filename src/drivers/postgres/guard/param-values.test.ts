import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shop, extension } from '../../../../test/support/postgres-catalog.ts'
import { AppError } from '../../../errors.ts'
import { exposedOf } from './exposed.ts'
import { bindParams, boundTexts } from './param-values.ts'

test('at most 20 wrong parameters are reported, because each hint takes time', () => {
  const exposed = exposedOf(shop())
  const values = Array.from({ length: 1_000 }, () => ({ type: 'nosuch', value: 1 }))
  let lookUps = 0
  const bind = (): unknown => bindParams({ values, json: '' }, () => (lookUps++, exposed))
  assert.throws(bind, AppError)
  assert.equal(lookUps, 20)
})

test('a parameter that the query uses as too large a regular expression is refused', () => {
  const bound = bindParams({ values: ['([a-z]{1,255}){1,40}abcdefghijklmnop', '^a{2}$'], json: '' }, () =>
    exposedOf(shop()),
  )
  assert.deepEqual(boundTexts(bound, { slots: [0, 1], patterns: [{ at: 1, syntax: {} }] }), bound.texts)
  assert.throws(() => boundTexts(bound, { slots: [0, 1], patterns: [{ at: 0, syntax: {} }] }), AppError)
})

test('a parameter with a long run of punctuation is refused, because glibc compares it slowly', () => {
  const bind = (text: string): unknown => bindParams({ values: [text], json: '' }, () => exposedOf(shop()))
  bind(`${'-'.repeat(1_000)}a${' '.repeat(1_000)}`)
  assert.throws(() => bind('- '.repeat(501)), AppError)
  bind('\u05d0'.repeat(5_000))
  for (const letter of ['\u0640', '\u0301', '\u02d0']) assert.throws(() => bind(letter.repeat(1_001)), AppError)
  bind('\u0967'.repeat(100))
  for (const letter of ['\u0967', '\u0661', '-\u0e51']) assert.throws(() => bind(letter.repeat(101)), AppError)
})

test('a parameter of type tsquery has at most 32,768 bytes, because PostgreSQL reads it in quadratic time', () => {
  const bind = (value: string): unknown =>
    bindParams({ values: [{ type: 'tsquery', value }], json: '' }, () => exposedOf(shop()))
  bind(`${'a&'.repeat(16_000)}a`)
  assert.throws(() => bind(`${'a&'.repeat(16_384)}a`), AppError)
})

test('a parameter with many points and bars is refused beside ltree, because an lquery of them takes gigabytes', () => {
  const exposed = { ...exposedOf(shop()), extension: () => extension('ltree', '1.2') }
  const bind = (text: string): unknown => bindParams({ values: [text], json: '' }, () => exposed)
  bind(`${'a.'.repeat(1_000)}${'a|'.repeat(1_000)}a`)
  assert.throws(() => bind(`${'a.'.repeat(1_100)}${'a|'.repeat(1_100)}a`), AppError)
})
