import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from './errors.ts'
import { errorForLog } from './log.ts'

test('an error is logged by its kind, code and place, and not by a text that may quote somebody’s data', () => {
  const database = Object.assign(new Error('Key (email)=(ada@example.test) exists\n    at row 1'), { code: '23505' })
  const logged = errorForLog(new AppError('INTERNAL', 'It failed for ada@example.test.', { cause: database }))
  assert.doesNotMatch(JSON.stringify(logged), /ada@|row 1/)
  assert.deepEqual([logged.type, logged.code, logged.cause?.code], ['AppError', 'INTERNAL', '23505'])
  assert.match(logged.at[0] ?? '', /log\.test\.ts:\d+:\d+/)
})

test('what the engine says of our own code is kept', () => {
  assert.equal(errorForLog(new TypeError('x is not a function')).message, 'x is not a function')
})

test('what is no error, and causes without end, are logged too', () => {
  assert.deepEqual(errorForLog('secret'), { type: 'string', at: [] })
  const round = new Error('round')
  round.cause = round
  assert.ok(JSON.stringify(errorForLog(round)).length < 20_000)
})
