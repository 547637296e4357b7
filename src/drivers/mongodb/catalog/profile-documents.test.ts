// Counting the values of long documents must pause often, and give the same counts as without pauses.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BSON } from 'mongodb'
import type { CatalogColumn } from '../../driver.ts'
import { Documents } from './profile-documents.ts'

const many = <T>(n: number, make: (k: number) => T): T[] => Array.from({ length: n }, (_, k) => make(k))

function column(name: string, type: string): CatalogColumn {
  const detail = { types: { [type]: 1 }, presence: 1, top: true }
  const about = { nullable: true, primaryKey: false, references: null, description: null, unexposable: null }
  return { name, type: 'bson', ...about, detail, signals: [] }
}

/** Returns the number of pauses, and the profiles. */
function counted(columns: readonly CatalogColumn[], document: object) {
  const documents = new Documents(columns)
  let pauses = 0
  for (const _ of documents.addAll(BSON.serialize({ 0: document }))) pauses++
  const profiling = documents.profiles({ rows: null, complete: true })
  for (let rests = 0; ; rests++) {
    const step = profiling.next()
    if (step.done === true) return { pauses, rests, profiles: step.value }
  }
}

test('counting the values of a profile pauses within an array of long texts', () => {
  const texts = many(3_000, (k) => `a text of several words that is no address ${k} `.padEnd(256, 'x y '))
  const { pauses, profiles } = counted([column('v', 'string')], { v: texts })
  assert.deepEqual([profiles[0]?.sample?.count, profiles[0]?.sample?.distinct], [3_000, 3_000])
  assert.ok(pauses >= 10, `${pauses} pauses`)
})

test('counting the values of a profile pauses within an array of dates', () => {
  const { pauses, profiles } = counted([column('v', 'date')], { v: many(20_000, (k) => new Date(k * 1e7)) })
  assert.equal(profiles[0]?.sample?.count, 20_000)
  assert.ok(pauses >= 80, `${pauses} pauses`)
})

test('counting the values of a profile pauses within a document of many fields, and skips a document that is not read', () => {
  const v = Object.fromEntries(many(200_000, (k) => [`f${k}`, k]))
  const { pauses, profiles } = counted([column('v.f7', 'int')], { v })
  assert.deepEqual(profiles[0]?.range, { min: 7, max: 7 })
  assert.ok(pauses >= 10, `${pauses} pauses`)
  assert.equal(counted([column('v', 'object')], { v }).pauses, 0)
})

test('counting the values of a profile pauses for long names of fields that are not read', () => {
  const v = Object.fromEntries(many(1_000, (k) => [`${k}`.padEnd(4_000, 'n'), k]))
  const { pauses } = counted([column('v.a', 'int')], { v })
  assert.ok(pauses >= 6, `${pauses} pauses`)
})

test('computing the profiles of many columns pauses', () => {
  const names = many(100, (k) => `f${k}`)
  const columns = names.map((name) => column(name, 'int'))
  const { rests, profiles } = counted(columns, Object.fromEntries(names.map((name, k) => [name, k])))
  assert.deepEqual(
    profiles.map(({ name }) => name),
    names,
  )
  assert.ok(rests >= 10, `${rests} rests`)
})
