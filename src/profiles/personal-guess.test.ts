import assert from 'node:assert/strict'
import { test } from 'node:test'
import { guessByName, guessPersonal, NOT_PERSONAL, readColumnName } from './personal-guess.ts'

const COLUMNS = [
  ['customers', 'email', 'text', 'The name suggests e-mail addresses.'],
  ['customers', 'email', 'boolean', null],
  ['customers', 'email_sent', 'timestamp with time zone', null],
  ['customers', 'birth_date', 'date', 'The name suggests dates of birth.'],
  ['customers', 'name', 'character varying(80)', 'The name suggests names of people.'],
  ['products', 'name', 'text', null],
  ['staff', 'salary', 'numeric(12,2)', 'The name suggests incomes.'],
  ['trips', 'street', 'interval', null],
  ['users', 'address.city', 'string', 'The name suggests addresses.'],
  ['users', 'phone', 'INT64', 'The name suggests telephone numbers.'],
  ['users', 'ip', 'inet', 'The name suggests addresses of devices.'],
] as const

for (const [table, name, type, why] of COLUMNS) {
  test(`the guess about ${table}.${name} of type ${type} is: ${why ?? 'not personal'}`, () => {
    assert.deepEqual(guessByName(table, readColumnName({ name, type })), { guess: why !== null, why })
  })
}

test('a column of an enumerated type is not personal, whatever its name is', () => {
  assert.deepEqual(
    guessByName('users', readColumnName({ name: 'phone', type: 'phone_kind', labels: ['home'] })),
    NOT_PERSONAL,
  )
})

const BY_NAME = guessByName('customers', readColumnName({ name: 'email', type: 'text' }))

test('a mark by a person decides before the profile, and values that look personal decide before the name', () => {
  const kept = { personal: true, look: 'phone' }
  assert.deepEqual(guessPersonal(BY_NAME, { mark: false, kept }).guess, false)
  assert.match(guessPersonal(NOT_PERSONAL, { mark: true, kept: undefined }).why ?? '', /A person marked/)
  assert.match(guessPersonal(BY_NAME, { mark: null, kept }).why ?? '', /values look like telephone numbers/)
  assert.deepEqual(guessPersonal(BY_NAME, { mark: null, kept: { personal: true, look: 'json' } }), BY_NAME)
  assert.match(
    guessPersonal(NOT_PERSONAL, { mark: null, kept: { personal: true, look: null } }).why ?? '',
    /values that look personal/,
  )
  assert.deepEqual(guessPersonal(NOT_PERSONAL, { mark: null, kept: { personal: false, look: null } }), NOT_PERSONAL)
})
