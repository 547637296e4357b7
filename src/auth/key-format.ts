// An API key is sk_live_, 32 random characters, and a checksum of 6 characters, in base62. The checksum detects a
// mistyped key without a lookup. The store has only the SHA-256 of the key and its last characters.
import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

const PREFIX = 'sk_live_'
const LETTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_LETTERS = 32
const CHECK_LETTERS = 6
const HINT_LETTERS = 4
const FORM = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_LETTERS + CHECK_LETTERS}}$`)

export function makeKeyText(): string {
  const random = Array.from({ length: RANDOM_LETTERS }, () => LETTERS.charAt(randomInt(LETTERS.length))).join('')
  return PREFIX + random + checksum(PREFIX + random)
}

export function looksLikeKey(token: string): boolean {
  return token.startsWith(PREFIX)
}

export function isKeyText(token: string): boolean {
  return FORM.test(token) && token.endsWith(checksum(token.slice(0, -CHECK_LETTERS)))
}

/** A fast hash is enough, because nobody can guess the 190 random bits. */
export function hashOf(token: string): string {
  return hash('sha256', token)
}

/** The last characters are part of the checksum, so they reveal almost nothing about the secret. */
export function hintOf(key: string): string {
  return `…${key.slice(-HINT_LETTERS)}`
}

function checksum(text: string): string {
  let rest = crc32(text)
  let letters = ''
  for (let i = 0; i < CHECK_LETTERS; i++) {
    letters = LETTERS.charAt(rest % LETTERS.length) + letters
    rest = Math.floor(rest / LETTERS.length)
  }
  return letters
}
