import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FUNCTIONS } from '../allowed/allowed-functions.ts'
import { TYPES } from '../allowed/types-and-extensions.ts'
import { keptByCall, memoryOf } from './kept-memory.ts'

test('each function of pg_catalog is on a list, and any other keeps 400 bytes for each byte', () => {
  for (const name of FUNCTIONS) {
    // These two read any type of an exposed table.
    const most = /^jsonb?_populate_record/.test(name) ? 400 : 50
    assert.ok(keptByCall(name, false) <= most, name)
  }
  assert.equal(keptByCall('new_function', false), 400)
})

test('a type that is on no list takes 400 bytes for each byte of a made text', () => {
  assert.equal(memoryOf('new_type', false, false), 400)
  assert.equal(memoryOf('new_type', true, false), 400)
  for (const name of ['int4multirange', 'nummultirange']) assert.equal(memoryOf(name, false, false), 350)
  assert.ok(TYPES.has('int4multirange'))
})
