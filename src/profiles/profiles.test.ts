import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ColumnSample } from '../drivers/profile-from-sample.ts'
import type { Catalog, CatalogColumn, CatalogTable, Scalar, ValueKind } from '../drivers/driver.ts'
import { tableKey } from '../drivers/table-key.ts'
import { likelyKeys } from './likely-foreign-keys.ts'
import { isPersonalName } from './personal-names.ts'
import { allowedProfile } from './privacy.ts'
import { shownSignals } from './column-signals.ts'
import type { KeptColumn } from './stored-profiles.ts'

describe('columns that are personal by their name', () => {
  const says = (columns: string, kind: ValueKind, table = 'things') =>
    columns.split(' ').map((column) => [column, isPersonalName({ table, column, kind })])
  const all = (columns: string, personal: boolean) => columns.split(' ').map((column) => [column, personal])

  test('names of personal data are recognized in several languages and with any way to join words', () => {
    const texts =
      'email e_mail EMailAddress primaryEmail work.email user_email2 courriel correo phone phoneNumber Telefon telefonnummer ' +
      'teléfono mobile_no first_name lastName FIRSTNAME Nachname prénom apellidos username author street Straße address1 ' +
      'billingAddress adresse direccion zip postal_code PLZ iban bank_account credit_card cardNumber ssn national_id tax_id ' +
      'passport_no codice_fiscale dob birth_date Geburtsdatum date_de_naissance password_hash api_key token ip_address userAgent ' +
      'lat salary Gehalt religion 邮箱 電話番号 адрес customer_name contactName'
    assert.deepEqual(says(texts, 'text'), all(texts, true))
  })

  test('numbers and dates are personal by their name if they can be such data', () => {
    assert.deepEqual(
      says('phone card_number ssn salary birth_year latitude pin', 'number'),
      all('phone card_number ssn salary birth_year latitude pin', true),
    )
    assert.deepEqual(says('birthday date_of_birth born_at', 'time'), all('birthday date_of_birth born_at', true))
    assert.deepEqual(
      says('email_id address_id name street_count', 'number'),
      all('email_id address_id name street_count', false),
    )
    assert.deepEqual(
      says('email_sent_at phone_seen address_changed', 'time'),
      all('email_sent_at phone_seen address_changed', false),
    )
  })

  test('columns that only describe personal data, booleans and labels are not personal', () => {
    const about = 'email_verified phone_type address_country has_email card_brand token_type'
    assert.deepEqual(says(about, 'text'), all(about, false))
    assert.deepEqual(says('email phone ssn', 'boolean'), all('email phone ssn', false))
    assert.deepEqual(says('email phone ssn', 'label'), all('email phone ssn', false))
  })

  test('names of people are personal, but names of things are not', () => {
    const things = 'name product_name title status country currency sku category description city state channel segment'
    assert.deepEqual(says(things, 'text'), all(things, false))
    assert.deepEqual(says('name', 'text', 'customers'), all('name', true))
    assert.deepEqual(says('name', 'text', 'public_users'), all('name', true))
  })
})

function column(name: string, more: Partial<CatalogColumn> = {}): CatalogColumn {
  const rest = {
    nullable: true,
    primaryKey: false,
    references: null,
    description: null,
    unexposable: null,
    detail: null,
  }
  return { name, type: 'text', ...rest, ...more }
}
function table(name: string, columns: readonly CatalogColumn[]): CatalogTable {
  return {
    schema: 's',
    table: name,
    kind: 'table',
    description: null,
    estimatedRows: null,
    warnings: [],
    columns,
    detail: null,
  }
}
function kept(
  name: string,
  values: readonly (Scalar | null)[],
  {
    kind = 'text',
    mark,
    complete = true,
    more = {},
  }: { kind?: ValueKind; mark?: boolean; complete?: boolean; more?: Partial<CatalogColumn> } = {},
): KeptColumn {
  const sample = new ColumnSample(kind)
  for (const value of values) sample.add(value)
  const profile = {
    rowsSampled: values.length,
    complete,
    estimatedRows: null,
    columns: [sample.profile(name, { rows: null, complete })],
  }
  const marks = new Map(mark === undefined ? [] : [[name, mark]])
  const [one] = allowedProfile(
    profile,
    table('things', [column(name, more)]),
    marks,
    '2026-01-01T00:00:00.000Z',
  ).columns
  assert.ok(one)
  return one
}
const times = <T>(n: number, value: T): T[] => Array.from({ length: n }, () => value)

describe('the privacy rules', () => {
  test('values are stored if five rows share them, they have at most 64 characters, and at most fifty are distinct', () => {
    const one = kept('state', [...times(5, 'open'), ...times(4, 'rare'), ...times(9, 'x'.repeat(65))])
    assert.deepEqual(
      one.values?.map(({ value }) => value),
      ['open'],
    )
    assert.equal(
      kept(
        'code',
        Array.from({ length: 51 * 6 }, (_, n) => `c${n % 51}`),
      ).values,
      null,
    )
    assert.equal(
      kept(
        'code',
        Array.from({ length: 50 * 6 }, (_, n) => `c${n % 50}`),
      ).values?.length,
      50,
    )
    assert.equal(
      kept(
        'code',
        Array.from({ length: 40 }, (_, n) => `c${n}`),
      ).values,
      null,
    )
  })

  test('the range of long, mostly distinct numbers is hidden, except for primary keys and columns marked not personal', () => {
    const numbers = Array.from({ length: 100 }, (_, n) => 4_930_000_000 + n)
    const of = (values: readonly number[], more = {}) => kept('extra', values, { kind: 'number', ...more }).range
    assert.equal(of(numbers), null)
    assert.equal(of([...numbers, ...times(5, 4_930_000_000)]), null)
    assert.deepEqual(of(numbers, { more: { primaryKey: true } }), { min: 4_930_000_000, max: 4_930_000_099 })
    assert.deepEqual(of(numbers, { mark: false }), { min: 4_930_000_000, max: 4_930_000_099 })
    assert.deepEqual(of(numbers.map((n) => n / 1e3))?.min, 4_930_000)
    assert.deepEqual(of([3, 5]), { min: 3, max: 5 })
  })

  test('all values are hidden if a fifth of them look personal; otherwise only the personal values are hidden', () => {
    for (const text of [
      'ada@example.com',
      '+49 30 901820',
      'DE89370400440532013000',
      '4111 1111 1111 1111',
      '078-05-1120',
      '192.0.2.17',
      'Please call back before noon today',
    ]) {
      assert.deepEqual([kept('extra', [...times(20, text), ...times(80, 'none')]).personal], [true], text)
      const few = kept('extra', [...times(10, text), ...times(90, 'none')])
      assert.deepEqual([few.personal, few.values?.map(({ value }) => value)], [false, ['none']], text)
    }
  })

  test('the range of card numbers is hidden even if they are stored as numbers', () => {
    const cards = [4111111111111111, 5500000000000004, 378282246310005]
    const one = kept('reference', cards, { kind: 'number' })
    assert.deepEqual([one.personal, one.range, one.values], [true, null, null])
  })

  test("a person's mark decides whether a column is personal", () => {
    assert.equal(kept('email', times(9, 'ada@example.com'), { mark: false }).values?.length, 1)
    const hidden = kept('total', times(9, 4), { kind: 'number', mark: true })
    assert.deepEqual([hidden.values, hidden.range, hidden.personal], [null, null, true])
  })

  test('a text column is personal if the profile lists values but none was sampled', () => {
    const profile = { rowsSampled: 0, complete: false, estimatedRows: null }
    const seen = new ColumnSample('text').profile('state', { rows: null, complete: false })
    const columns = [{ ...seen, nullFrac: 0, distinctCount: 2, values: [{ value: 'a', share: 1, rows: 90 }] }]
    const [one] = allowedProfile({ ...profile, columns }, table('things', [column('state')]), new Map(), '').columns
    assert.deepEqual([one?.personal, one?.values], [true, null])
  })

  test('a column that is not in the table is not stored', () => {
    const seen = new ColumnSample('text').profile('hidden', { rows: null, complete: true })
    const profile = { rowsSampled: 0, complete: true, estimatedRows: 0, columns: [seen] }
    assert.deepEqual(allowedProfile(profile, table('things', [column('shown')]), new Map(), '').columns, [])
  })
})

describe('signals', () => {
  test('the signals of a column report only what the profile found', () => {
    assert.deepEqual(kept('a', ['x', 'y', 'x']).signals, ['always populated although nullable'])
    assert.deepEqual(kept('a', ['x', 'y', 'x'], { more: { nullable: false } }).signals, [])
    assert.deepEqual(kept('a', ['x', 'y', null]).signals, ['unique'])
    assert.deepEqual(kept('a', ['x', 'y', null], { complete: false }).signals, [])
    assert.deepEqual(kept('a', ['x', 'x', null]).signals, ['constant'])
    assert.deepEqual(kept('a', [null, null]).signals, ['always null'])
    assert.deepEqual(kept('a', []).signals, [])
    assert.deepEqual(kept('a', ['12', '13', '12', null]).signals, ['numbers written as text'])
  })

  test('a column is called enumerated only if all its values are shown', () => {
    const at = '2026-01-10T00:00:00.000Z'
    assert.deepEqual(shownSignals(kept('a', [...times(5, 'x'), ...times(5, 'y')]), at), ['enumerated'])
    assert.deepEqual(shownSignals(kept('a', [...times(5, 'x'), ...times(5, 'y'), 'z']), at), [])
  })

  test('a signal of a column reports the age of its newest time', () => {
    const at = '2026-01-10T12:00:00.000Z'
    const age = (value: string): readonly string[] =>
      shownSignals(kept('at', [value, '2020-01-01'], { kind: 'time' }), at)
    assert.deepEqual(age('2026-01-10T11:00:00Z'), ['newest value was from the day of the profile'])
    assert.deepEqual(age('2026-01-07'), ['newest value was 3 days old'])
    assert.deepEqual(age('2031-01-01T00:00:00'), ['contains dates in the future'])
  })

  test('likely keys are found by name, type and range, and keys of hidden tables are never found', () => {
    const number = { type: 'int' }
    const customers = table('customers', [column('id', { ...number, primaryKey: true })])
    const orders = table('orders', [
      column('customer_id', number),
      column('customerId', { type: 'text' }),
      column('customers_id', number),
    ])
    const profile = (of: CatalogTable, values: Record<string, readonly Scalar[]>) => {
      const columns = of.columns.map(({ name, type }) => ({
        ...kept(name, values[name] ?? [], { kind: 'number' }),
        name,
        type,
      }))
      return [
        tableKey('s', of.table),
        { schema: 's', table: of.table, capturedAt: '', rowsSampled: 3, complete: true, columns },
      ] as const
    }
    const profiles = new Map([
      profile(customers, { id: [1, 2, 9] }),
      profile(orders, { customer_id: [2, 9], customers_id: [1, 10] }),
    ])
    const exposed = (tables: readonly CatalogTable[]): Catalog => ({ capturedAt: '', capture: null, tables })
    const found = likelyKeys(exposed([customers, orders]), profiles)
    assert.deepEqual(
      [...found],
      [[tableKey('s', 'orders'), new Map([['customer_id', { schema: 's', table: 'customers', column: 'id' }]])]],
    )
    assert.deepEqual([...likelyKeys(exposed([orders]), profiles)], [])
  })
})
