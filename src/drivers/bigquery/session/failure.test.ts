// The errors that BigQuery itself reports are tested over HTTP, in test/drivers/bigquery-http.test.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failure } from './failure.ts'

test('a timeout of BigQuery is reported as a server that does not answer, and not as a defect of the service', () => {
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
