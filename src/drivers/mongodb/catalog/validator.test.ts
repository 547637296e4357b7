import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readValidator } from './validator.ts'

const labelsIn = (state: object, options: object = {}) => {
  const properties = { state, lines: { items: { properties: { state } } } }
  const { paths } = readValidator({ validator: { $jsonSchema: { properties } }, ...options })
  return paths.filter(({ path }) => path.at(-1) === 'state').map(({ labels }) => labels)
}

for (const [title, state, options, want] of [
  ['an enum', { enum: ['open', 'paid', null] }, {}, ['open', 'paid']],
  ['a list of numbers and booleans', { enum: [1, true] }, {}, [1, true]],
  ['a validator that only warns', { enum: ['open'] }, { validationAction: 'warn' }, undefined],
  ['a validator that exempts old documents', { enum: ['open'] }, { validationLevel: 'moderate' }, undefined],
  ['a document among the values', { enum: ['open', { a: 1 }] }, {}, undefined],
  ['a long text', { enum: ['x'.repeat(65)] }, {}, undefined],
  ['a list of too many values', { enum: Array.from({ length: 101 }, (_, n) => n) }, {}, undefined],
  ['an empty validator', {}, {}, undefined],
] as const) {
  test(`in a $jsonSchema validator, ${title} gives ${want === undefined ? 'no labels' : `the labels ${JSON.stringify(want)}`}, also in arrays`, () => {
    assert.deepEqual(labelsIn(state, options), [want, want])
  })
}
