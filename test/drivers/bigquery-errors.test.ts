// Tests the errors that BigQuery documents: as an HTTP error and as a failed job, in the dry run and in the run. No
// error text for a caller may reveal anything hidden.
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { AppError, type Code } from '../../src/errors.ts'
import { connectBigQuery, soon, WIDE, type ConnectedBigQuery } from '../support/bigquery-connected.ts'
import { PROJECT } from '../support/bigquery-shop.ts'
import { failed, ok, type Reply } from '../support/bigquery.ts'

const SMALL = 'SELECT id, name FROM shop.products ORDER BY id LIMIT 2'
const SECRETS = /CANARY|hr\.|salaries|reader@|ya29|gserviceaccount|_vt|\[\d+:\d+\]/

let at: ConnectedBigQuery
before(async () => {
  at = await connectBigQuery({ columns: ['id', 'name', 'price', 'token'] })
})
afterEach(() => {
  at.double.unrig()
  assert.deepEqual(at.double.violations, [])
  at.double.requests.length = 0
})
after(async () => {
  await at[Symbol.asyncDispose]()
})

/** Returns the error in each of its forms: an HTTP error, and HTTP 200 with a failed job or query. */
function carriers(status: number, reason: string, message: string): readonly Reply[] {
  const entry = { reason, message, location: 'query' }
  return [
    // A long Retry-After prevents retries.
    { ...failed({ status, reason, message }), headers: { 'retry-after': '30' } },
    ok({
      configuration: { jobType: 'QUERY' },
      statistics: { query: {} },
      status: { state: 'DONE', errorResult: entry, errors: [entry] },
      jobComplete: true,
      errors: [entry],
    }),
  ]
}

type Row = readonly [status: number, reason: string, message: string, dryRun: Code, run: Code]

const ROWS: readonly Row[] = [
  [400, 'invalidQuery', 'Syntax error: Expected end of input but got "x" at [1:9]', 'INVALID_QUERY', 'QUERY_FAILED'],
  [
    400,
    'invalidQuery',
    'No matching signature for operator = for argument types: INT64, STRING at [1:9]',
    'QUERY_FAILED',
    'QUERY_FAILED',
  ],
  [400, 'invalid', 'Something is not valid', 'QUERY_FAILED', 'QUERY_FAILED'],
  [400, 'invalidQuery', 'Unrecognized name: name at [1:8]', 'QUERY_DENIED', 'QUERY_FAILED'],
  [
    400,
    'bytesBilledLimitExceeded',
    'Query exceeded limit for bytes billed: 1000. 20971520 or higher required.',
    'QUERY_DENIED',
    'QUERY_DENIED',
  ],
  [
    404,
    'notFound',
    `Not found: Table ${PROJECT}:shop.products was not found in location EU`,
    'SCHEMA_STALE',
    'SCHEMA_STALE',
  ],
  [404, 'notFound', `Not found: Dataset ${PROJECT}:shop was not found in location EU`, 'SCHEMA_STALE', 'SCHEMA_STALE'],
  [404, 'notFound', 'Not found: Project CANARY', 'DATASOURCE_UNAVAILABLE', 'DATASOURCE_UNAVAILABLE'],
  [
    403,
    'accessDenied',
    'Access Denied: Table p:hr.salaries: User reader@x.iam.gserviceaccount.com does not have permission',
    'DATASOURCE_UNAVAILABLE',
    'DATASOURCE_UNAVAILABLE',
  ],
  [
    403,
    'accessDenied',
    'Access Denied: Project p: User does not have bigquery.jobs.create permission in project p.',
    'DATASOURCE_UNAVAILABLE',
    'DATASOURCE_UNAVAILABLE',
  ],
  [
    403,
    'accessNotConfigured',
    'BigQuery API has not been used in project 1234 before or it is disabled.',
    'DATASOURCE_UNAVAILABLE',
    'DATASOURCE_UNAVAILABLE',
  ],
  [
    403,
    'billingNotEnabled',
    'Billing has not been enabled for this project.',
    'DATASOURCE_UNAVAILABLE',
    'DATASOURCE_UNAVAILABLE',
  ],
  [400, 'invalidUser', 'User CANARY', 'DATASOURCE_UNAVAILABLE', 'DATASOURCE_UNAVAILABLE'],
  [403, 'quotaExceeded', 'Quota exceeded: CANARY', 'OVERLOADED', 'OVERLOADED'],
  [403, 'rateLimitExceeded', 'Exceeded rate limits', 'OVERLOADED', 'OVERLOADED'],
  [400, 'jobRateLimitExceeded', 'too many', 'OVERLOADED', 'OVERLOADED'],
  [400, 'resourcesExceeded', 'Resources exceeded: CANARY', 'QUERY_FAILED', 'QUERY_FAILED'],
  [403, 'responseTooLarge', 'Response too large to return.', 'QUERY_FAILED', 'QUERY_FAILED'],
  [400, 'billingTierLimitExceeded', 'tier', 'QUERY_FAILED', 'QUERY_FAILED'],
  [400, 'tableUnavailable', 'CANARY', 'QUERY_FAILED', 'QUERY_FAILED'],
  [400, 'timeout', 'Operation timed out after 1.0 hours', 'QUERY_TIMEOUT', 'QUERY_TIMEOUT'],
  [400, 'stopped', 'Job execution was cancelled: User requested cancellation', 'QUERY_TIMEOUT', 'QUERY_TIMEOUT'],
  [500, 'backendError', 'CANARY', 'DATASOURCE_UNAVAILABLE', 'DATASOURCE_UNAVAILABLE'],
  [503, 'internalError', 'CANARY', 'DATASOURCE_UNAVAILABLE', 'DATASOURCE_UNAVAILABLE'],
  [400, 'jobBackendError', 'CANARY', 'DATASOURCE_UNAVAILABLE', 'DATASOURCE_UNAVAILABLE'],
  [400, 'jobInternalError', 'CANARY', 'DATASOURCE_UNAVAILABLE', 'DATASOURCE_UNAVAILABLE'],
  [403, 'userRateLimitExceeded', 'CANARY', 'OVERLOADED', 'OVERLOADED'],
  [418, 'novelty', 'CANARY', 'QUERY_FAILED', 'QUERY_FAILED'],
  [400, 'constructor', '__proto__', 'QUERY_FAILED', 'QUERY_FAILED'],
]

describe('an error of BigQuery', () => {
  for (const [status, reason, message, dryRun, run] of ROWS) {
    test(`an error ${reason} (${message.slice(0, 40)}) is ${dryRun} in the dry run and ${run} in the run, as an HTTP error and as a failed job`, async () => {
      for (const [kind, code] of [
        ['dry run', dryRun],
        ['run', run],
      ] as const) {
        for (const reply of carriers(status, reason, message)) {
          at.double.rig(kind, reply, 99)
          const refusal = await at.refusal(SMALL)
          at.double.unrig()
          assert.equal(refusal.code, code, `${kind}: ${refusal.message}`)
          if (reason !== 'novelty' || kind === 'run') assert.doesNotMatch(refusal.message, SECRETS)
          assert.match(refusal.message, /\S/)
        }
      }
    })
  }

  test('an error with status 403 and an unknown reason is not reported as an error of the query', async () => {
    for (const kind of ['dry run', 'run'] as const) {
      at.double.rig(kind, failed({ status: 403, reason: 'novelty', message: 'Denied on table CANARY' }))
      const refusal = await at.refusal(SMALL)
      assert.equal(refusal.code, 'DATASOURCE_UNAVAILABLE')
      assert.doesNotMatch(refusal.message, SECRETS)
    }
  })

  test('an error has its details: estimate and limit, a column, or when to retry', async () => {
    at.double.rig(
      'run',
      failed({ status: 400, reason: 'bytesBilledLimitExceeded', message: 'limit: 1000. 20971520 or higher required.' }),
    )
    const cost = await at.refusal(SMALL)
    assert.deepEqual(
      [cost.extra['blocked'], cost.extra['estimate'], cost.extra['limit']],
      [{ kind: 'cost', name: 'bytes processed' }, 20_971_520, WIDE.maxCost],
    )
    at.double.rig(
      'dry run',
      failed({ status: 400, reason: 'invalidQuery', message: 'Unrecognized name: `id`; Did you mean name? at [1:8]' }),
    )
    const column = await at.refusal(SMALL)
    assert.deepEqual(column.extra['blocked'], { kind: 'column', name: 'id' })
    assert.equal(column.message, 'column id does not exist or is not exposed')
    assert.match(String(column.extra['hint']), /^Did you mean id\? FROM shows products \(id, name, price\)\.$/)
    at.double.rig('dry run', failed({ status: 403, reason: 'quotaExceeded', message: 'x' }))
    assert.ok(Number((await at.refusal(SMALL)).extra['retryAfter']) >= 1)
  })

  const messages: readonly (readonly [string, Code, RegExp])[] = [
    ['Name price not found inside _vt at [1:30]', 'SCHEMA_STALE', /introspect/],
    [
      'No matching signature for function CONCAT for argument types: INT64. Supported signature: CONCAT(STRING, [STRING, ...]) at [2:3]',
      'QUERY_FAILED',
      /^No matching signature for function CONCAT for argument types: INT64\. Supported signature: CONCAT\(STRING, \[STRING, \.\.\.\]\)$/,
    ],
    [
      'SELECT list expression references column name which is neither grouped nor aggregated at [1:8]',
      'QUERY_FAILED',
      /neither grouped nor aggregated$/,
    ],
    ['Column _vt.name is ambiguous', 'QUERY_FAILED', /^Column name is ambiguous$/],
    [`Access to ${PROJECT}.hr.salaries`, 'QUERY_FAILED', /^BigQuery refuses the query\.$/],
    ['Unrecognized name: salary at [1:8]', 'QUERY_FAILED', /^BigQuery refuses the query\.$/],
    ['No matching signature for operator = at [1:8]; failed to parse view', 'QUERY_FAILED', /one of its views/],
    [
      'Unrecognized name: salary at [1:8]; failed to parse view p.hr.v',
      'QUERY_FAILED',
      /^BigQuery refuses the query\.$/,
    ],
    // A message about a hidden view is replaced, even if the query happens to contain the name that the message quotes.
    // A message is also replaced if the quoted name is only a part of a name in the query.
    ['Unrecognized name: name at [1:8]; failed to parse view p.hr.v', 'QUERY_FAILED', /^BigQuery refuses the query\.$/],
    ['Unrecognized name: roduct at [1:8]', 'QUERY_FAILED', /^BigQuery refuses the query\.$/],
    ["Something is wrong with 'roduct'", 'QUERY_FAILED', /^BigQuery refuses the query\.$/],
    [
      "Cannot query over table 'p.hr.salaries' without a filter over column(s) 'day' that can be used for partition elimination",
      'QUERY_FAILED',
      /with a filter on its partitioning column/,
    ],
    ['It fails. See https://cloud.google.com/bigquery/docs/CANARY', 'QUERY_FAILED', /^It fails\.$/],
    ['x'.repeat(5_000), 'QUERY_FAILED', /^BigQuery refuses the query\.$/],
    ['', 'QUERY_FAILED', /^BigQuery refuses the query\.$/],
  ]
  for (const [message, code, expected] of messages) {
    test(`an error with message "${message.slice(0, 60)}" in a dry run is ${code}`, async () => {
      at.double.rig('dry run', failed({ status: 400, reason: 'invalidQuery', message }))
      const refusal = await at.refusal(SMALL)
      assert.equal(refusal.code, code)
      assert.match(refusal.message, expected)
      assert.doesNotMatch(refusal.message, SECRETS)
    })
  }

  const unequal = [
    'Queries in UNION ALL have mismatched column count; query 1 has 4 columns, query 2 has 2 columns at [1:2]',
    'Column 2 in EXCEPT DISTINCT has incompatible types: STRING, INT64 at [1:2]',
    'Subquery of type IN must have only one output column at [1:2]',
    'SELECT * expands to zero columns after applying EXCEPT at [1:2]',
  ]
  for (const message of unequal) {
    test(`an error with message "${message.slice(0, 40)}" has a hint about stars only if the query has a star`, async () => {
      at.double.rig('dry run', failed({ status: 400, reason: 'invalidQuery', message }), 2)
      const starred = await at.refusal('SELECT * FROM shop.products UNION ALL SELECT 1, "a"')
      assert.deepEqual([starred.code, starred.message], ['QUERY_FAILED', message.replace(/ at \[1:2\]$/, '')])
      assert.match(String(starred.extra['hint']), /^A star contains the exposed columns only/)
      assert.doesNotMatch(String((await at.refusal(SMALL)).extra['hint']), /star/)
    })
  }

  const ran: readonly (readonly [string, RegExp])[] = [
    ['Division by zero: CANARY / 0', /^Division by zero/],
    ['Bad int64 value: CANARY', /cast/],
    ['int64 overflow: CANARY', /range/],
    ['Failed to parse input string "CANARY"', /date or time/],
    ['Scalar subquery produced more than one element', /sub-query/],
    ['Array index 7 is out of bounds', /array|range/],
    ['CANARY of an unknown kind', /^BigQuery failed the query while it ran/],
  ]
  for (const [message, expected] of ran) {
    test(`an error with message "${message}" in a run is QUERY_FAILED, without the value`, async () => {
      at.double.rig('run', failed({ status: 400, reason: 'invalidQuery', message }))
      const refusal = await at.refusal(SMALL)
      assert.equal(refusal.code, 'QUERY_FAILED')
      assert.match(refusal.message, expected)
      assert.doesNotMatch(refusal.message, /CANARY/)
    })
  }
})

describe('refused credentials', () => {
  const rows: readonly (readonly [string, unknown, RegExp])[] = [
    [
      'a revoked key',
      { error: 'invalid_grant', error_description: 'Invalid JWT Signature. CANARY' },
      /revoked or has expired, or the clock/,
    ],
    [
      'a deleted account',
      { error: 'invalid_grant', error_description: 'Invalid grant: account not found' },
      /refuses the service account/,
    ],
    [
      'an unknown client',
      { error: 'invalid_client', error_description: 'CANARY' },
      /does not know the service account/,
    ],
    ['HTML instead of a token', '<html>', /.+/],
    ['an answer without a token', '{}', /.+/],
  ]
  for (const [what, body, expected] of rows) {
    test(`refused credentials give DATASOURCE_UNAVAILABLE: ${what}`, async () => {
      const settings = at.driver.settings(at.settings)
      at.door.revoke()
      // BigQuery first refuses the cached token, and then the request for a new token.
      at.double.rig('token', { status: what.startsWith('an answer') ? 200 : 400, body })
      const refusal = await at.refusal(SMALL)
      assert.equal(refusal.code, 'DATASOURCE_UNAVAILABLE')
      assert.match(refusal.message, expected)
      assert.doesNotMatch(refusal.message, /CANARY|html/)
      await (await at.driver.connect(settings, { allowPrivateHosts: true }, soon()))[Symbol.asyncDispose]()
    })
  }

  test('a token that is not valid in an HTTP header is not used', async () => {
    at.door.revoke()
    at.double.rig('token', ok({ access_token: 'x\r\nHost: evil', expires_in: 3600 }))
    const refusal = await at.refusal(SMALL)
    assert.ok(refusal instanceof AppError && refusal.code === 'DATASOURCE_UNAVAILABLE')
  })
})
