// Invalid TLS secrets must be refused when somebody sets them, and not only when a connection fails.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { makeCertificates } from '../../test/support/certificates.ts'
import { wrongSecrets } from './connection-fields.ts'

const KNOWN = ['tlsCa', 'tlsCertificate', 'tlsKey']

/** Returns a DER element of less than 64 KiB. */
function der(tag: number, content: Buffer): Buffer {
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

/**
 * Returns a well-formed RSA key of `bits` bits that is not a real key. A real key of this size would take too long to
 * generate.
 */
function longKey(bits: number): string {
  const modulus = randomBytes(bits / 8)
  modulus[0] = 0x80
  modulus[modulus.length - 1] = 0x01
  const numbers = [Buffer.of(0), Buffer.concat([Buffer.of(0), modulus]), Buffer.of(3), ...Array(6).fill(Buffer.of(3))]
  const key = der(0x30, Buffer.concat(numbers.map((number) => der(0x02, number))))
  return `-----BEGIN RSA PRIVATE KEY-----\n${key.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END RSA PRIVATE KEY-----\n`
}

test('a TLS key is refused if it does not match its certificate, or is so long that signing takes seconds', async () => {
  await using certificates = await makeCertificates()
  const { pem } = certificates
  const pair = { tlsCertificate: pem['ann.crt'] ?? '', tlsKey: pem['ann.key'] ?? '' }
  assert.deepEqual(wrongSecrets('POSTGRES', KNOWN, pair), [])
  assert.deepEqual(wrongSecrets('POSTGRES', KNOWN, { ...pair, tlsKey: pem['server.key'] ?? '' }), [
    'tlsKey: is not an unencrypted PEM key that fits tlsCertificate',
  ])
  assert.deepEqual(wrongSecrets('POSTGRES', KNOWN, { ...pair, tlsKey: longKey(16_384) }), [
    'tlsKey: is longer than 8192 bits',
  ])
})
