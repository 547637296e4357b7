import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lookOf } from './recognize-text.ts'

const LOOKS = [
  [
    'email',
    'ada@example.com',
    'a.b+c@mail.example.co.uk',
    'müller@exämple.de',
    'Ada L <ada@example.com>',
    'a@b.example;c@d.example',
  ],
  [
    'phone',
    '+49 30 901820',
    '(030) 901820-11',
    '00441632960961',
    '555-0134-22',
    '+1 202 555 0134 ext 12',
    '2025550134',
  ],
  ['iban', 'DE89 3704 0044 0532 0130 00', 'GB82WEST12345698765432'],
  ['card', '4111 1111 1111 1111', '5500-0000-0000-0004', '378282246310005'],
  ['nationalId', '078-05-1120', 'AB 12 34 56 C', '12345678Z', 'RSSMRA85T10A562S', '529.982.247-25', '2950 4321 9876'],
  ['ipAddress', '192.0.2.17', '2001:db8::1', '10.0.0.0/8'],
  ['uuid', '0b2f1c1e-6a34-4a4f-9a43-0d7a1f1b9d11'],
  ['url', 'https://example.com/a?b=c'],
  ['json', '{"a": 1}', '[1, 2]'],
  ['date', '2026-01-31', '2026-01-31T10:00:00Z', '2026-01-31 10:00:00.123+02'],
  ['number', '42', '-3.5', '1234567'],
  ['freeText', 'Please call me back before the end of the week.'],
] as const

for (const [look, ...texts] of LOOKS) {
  test(`lookOf() recognizes texts that look like ${look}`, () => {
    for (const text of texts) assert.equal(lookOf(text), look, text)
  })
}

test('lookOf() recognizes nothing in labels and codes, and takes no number with a wrong check digit for a card or an IBAN', () => {
  for (const text of [
    '',
    '  ',
    'shipped',
    'in transit',
    'EUR',
    'A-17',
    'DE89 3704 0044 0532 0130 01x',
    'Nordlicht GmbH',
    'left-pad@1.20.30',
  ]) {
    assert.equal(lookOf(text), null, text)
  }
  assert.notEqual(lookOf('4111 1111 1111 1112'), 'card')
  assert.notEqual(lookOf('DE89 3704 0044 0532 0130 01'), 'iban')
})

test('lookOf() checks only the first 256 characters of a long text', () => {
  assert.equal(lookOf('a@'.repeat(500_000)), null)
  assert.equal(lookOf('word '.repeat(200_000)), 'freeText')
  assert.equal(lookOf('0'.repeat(1_000_000)), null)
})
