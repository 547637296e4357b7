// How an API key is written: sk_live_, 32 random letters, 6 letters of checksum, all base62. A mistyped or made-up key
// is told by its letters alone; only the SHA-256 of a key is ever kept.
import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

const PREFIX = 'sk_live_'
const LETTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_LETTERS = 32
const CHECK_LETTERS = 6
const HINT_LETTERS = 4
const FORM = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_LETTERS + CHECK_LETTERS}}$`)

/** A new key; 190 bits from the system's generator. */
export function makeKeyText(): string {
  const random = Array.from({ length: RANDOM_LETTERS }, () => LETTERS.charAt(randomInt(LETTERS.length))).join('')
  return PREFIX + random + checksum(PREFIX + random)
}

export function looksLikeKey(token: string): boolean {
  return token.startsWith(PREFIX)
}

/** False for what was never made here; needs no look-up. */
export function isKeyText(token: string): boolean {
  return FORM.test(token) && token.endsWith(checksum(token.slice(0, -CHECK_LETTERS)))
}

/** SHA-256, hex. A fast hash suffices: nobody guesses 190 bits. */
export function hashOf(token: string): string {
  return hash('sha256', token)
}

/** The last letters, to tell keys apart. They are of the checksum: of the secret part they say next to nothing. */
export function hintOf(key: string): string {
  return `…${key.slice(-HINT_LETTERS)}`
}

/** CRC-32 in base62: finds slips, hides nothing. */
function checksum(text: string): string {
  let rest = crc32(text)
  let letters = ''
  for (let i = 0; i < CHECK_LETTERS; i++) {
    letters = LETTERS.charAt(rest % LETTERS.length) + letters
    rest = Math.floor(rest / LETTERS.length)
  }
  return letters
}
