import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from './errors.ts'
import { errorForLog } from './log.ts'

test('an error is logged with type, code and location, but without a message that may contain data', () => {
  const database = Object.assign(new Error('Key (email)=(ada@example.test) exists\n    at row 1'), { code: '23505' })
  const logged = errorForLog(new AppError('INTERNAL', 'It failed for ada@example.test.', { cause: database }))
  assert.doesNotMatch(JSON.stringify(logged), /ada@|row 1/)
  assert.deepEqual([logged.type, logged.code, logged.cause?.code], ['AppError', 'INTERNAL', '23505'])
  assert.match(logged.at[0] ?? '', /log\.test\.ts:\d+:\d+/)
})

test('messages of the JavaScript engine are logged', () => {
  assert.equal(errorForLog(new TypeError('x is not a function')).message, 'x is not a function')
})

test('values that are not errors can be logged, and a chain of causes is cut', () => {
  assert.deepEqual(errorForLog('secret'), { type: 'string', at: [] })
  const round = new Error('round')
  round.cause = round
  assert.ok(JSON.stringify(errorForLog(round)).length < 20_000)
})
