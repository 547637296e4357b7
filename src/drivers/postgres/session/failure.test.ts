import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failure } from './failure.ts'
import { DatabaseError } from './protocol-messages.ts'

const QUERY = {
  text: `SELECT "t7"."id" AS "id", 'canary "ghost"', E'\\\\"ghost"' FROM (SELECT "b"."id" FROM "public"."orders" AS "b") AS "t7"("id")`,
  names: new Map([
    ['t7', 'orders'],
    ['__c8', 'recent'],
  ]),
}

const SAID: readonly (readonly [string, string, Readonly<Record<string, string>>, string])[] = [
  [
    'a generated alias becomes the caller’s name',
    'column "t7.id" must appear in the GROUP BY clause',
    { C: '42803' },
    'column "orders.id" must appear in the GROUP BY clause',
  ],
  [
    'an unquoted generated alias becomes the caller’s name',
    'column t7.id is of type x',
    { C: '42804' },
    'column orders.id is of type x',
  ],
  [
    'the prefix pg_catalog. is removed',
    'function pg_catalog.abs(pg_catalog.text) does not exist',
    { C: '42883' },
    'function abs(text) does not exist',
  ],
  [
    'DETAIL and HINT are dropped',
    'operator does not exist: int4 + text',
    { C: '42883', D: 'canary', H: 'canary' },
    'operator does not exist: int4 + text',
  ],
  [
    'a name that is not in the text is not shown',
    'infinite recursion detected in policy for relation "canary"',
    { C: '42P17' },
    'The database refuses the query in this form.',
  ],
  [
    'an error that a function raised is not shown',
    'canary',
    { C: '42883', W: 'PL/pgSQL function f()' },
    'The database refuses the query in this form.',
  ],
  [
    'an alias with underscores becomes the caller’s name',
    'recursive reference to query __c8 must not appear within an outer join',
    { C: '42P19' },
    'recursive reference to query recent must not appear within an outer join',
  ],
  [
    'a name that occurs only in a literal is not reported',
    'column "ghost" must appear in the GROUP BY clause',
    { C: '42803' },
    'The database refuses the query in this form.',
  ],
  [
    'the error of a policy is not shown, even if it names something in the text',
    'infinite recursion detected in policy for relation "orders"',
    { C: '42P17' },
    'The database refuses the query in this form.',
  ],
  [
    'the name of a missing object is not shown',
    'text search configuration "orders" does not exist',
    { C: '42704' },
    'A collation, a text search configuration or a JSON path variable that the query names does not exist.',
  ],
  [
    'a missing permission has its own sentence',
    'permission denied for table canary',
    { C: '42501' },
    'The login of this datasource may not read something this query needs.',
  ],
  [
    'a value is never shown',
    'invalid input syntax for type integer: "canary"',
    { C: '22P02' },
    'A string is not a valid value of the type it is cast to.',
  ],
  [
    'an unlisted code of class 22 has the sentence of its class',
    'canary',
    { C: '22ZZZ' },
    'A value does not fit what the query does with it.',
  ],
  [
    'a path of the server is not shown',
    'could not write to file "base/pgsql_tmp/canary": No space left on device',
    { C: '53100' },
    'The database does not have enough resources for this query.',
  ],
  [
    'a limit is shown',
    'temporary file size exceeds temp_file_limit (65536kB)',
    { C: '53400' },
    'temporary file size exceeds temp_file_limit (65536kB)',
  ],
  ['a depth limit is shown', 'stack depth limit exceeded', { C: '54001' }, 'stack depth limit exceeded'],
  [
    'the message of a foreign server is not shown',
    'canary',
    { C: 'HV000' },
    'A foreign server behind a table of this query failed.',
  ],
  ['the message of a RAISE is not shown', 'canary', { C: 'P0001' }, 'The database failed the query.'],
  [
    'the message of an internal error is not shown',
    'cache lookup failed for canary',
    { C: 'XX000' },
    'The database had an internal error.',
  ],
]

for (const [title, message, fields, expected] of SAID) {
  test(title, () => {
    const error = failure(new DatabaseError(new Map(Object.entries({ M: message, ...fields }))), QUERY)
    assert.deepEqual([error.code, error.message], ['QUERY_FAILED', expected])
    assert.match(String(error.extra['hint']), /^[A-Z].*\.$/)
    assert.doesNotMatch(JSON.stringify(error.extra), /canary/)
  })
}

for (const [code, expected] of [
  ['57P01', 'DATASOURCE_UNAVAILABLE'],
  ['08006', 'DATASOURCE_UNAVAILABLE'],
  ['25P04', 'QUERY_TIMEOUT'],
] as const) {
  test(`${code} is ${expected}`, () => {
    assert.equal(failure(new DatabaseError(new Map([['C', code]])), QUERY).code, expected)
  })
}
