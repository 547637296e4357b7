// What a failing network is told as. The rows of BigQuery's own reasons are looked at over the wire.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failure } from './failure.ts'

test('a time that is over is a server that does not answer, not a defect of ours', () => {
  const timeouts = [
    new DOMException('The operation was aborted due to timeout', 'TimeoutError'),
    ...['CONNECT', 'HEADERS', 'BODY'].map((what) =>
      Object.assign(new Error(what), { code: `UND_ERR_${what}_TIMEOUT` }),
    ),
  ]
  for (const error of timeouts) {
    const { code, message } = failure(error)
    assert.deepEqual([code, message], ['DATASOURCE_UNAVAILABLE', 'BigQuery did not answer in time.'])
  }
  assert.equal(failure(new TypeError('x is not a function')).code, 'INTERNAL')
})
