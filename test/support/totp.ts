// An authenticator app: computes the code for a time (RFC 6238, SHA-1, six digits, 30 s) from the address in the QR
// code.
import { createHmac } from 'node:crypto'
import { mock } from 'node:test'

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const PERIOD_MS = 30_000

/**
 * Stops the clock of this process in the middle of a period of 30 s, because codes would expire on a slow machine. The
 * clock goes on when the result is disposed.
 */
export function stopDates(): Disposable {
  const now = (Math.floor(Date.now() / PERIOD_MS) + 0.5) * PERIOD_MS
  mock.timers.enable({ apis: ['Date'], now })
  return { [Symbol.dispose]: () => mock.timers.reset() }
}

/** `steps` is the number of periods of 30 s from now. */
export function totp(uri: string, steps = 0, now = Date.now()): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(Math.floor(now / PERIOD_MS) + steps))
  const mac = createHmac('sha1', unbase32(secretOf(uri)))
    .update(counter)
    .digest()
  const at = (mac.at(-1) ?? 0) & 15
  return String((mac.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, '0')
}

/** `uri` is the address in the QR code. */
export function secretOf(uri: string): string {
  return new URL(uri).searchParams.get('secret') ?? ''
}

function unbase32(text: string): Buffer {
  const bits = [...text].map((letter) => LETTERS.indexOf(letter).toString(2).padStart(5, '0')).join('')
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => parseInt(byte, 2)))
}
