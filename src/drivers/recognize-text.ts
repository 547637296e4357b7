// Recognizes whether a text looks like an e-mail address, a personal number, a sentence and so on. Nothing is stored
// here: profile-from-sample.ts computes the share of each kind in a column, and profiles/privacy.ts decides what may be
// stored.

/** A column with texts of the first six kinds, or of free text, may be personal. */
export type Look =
  | 'email'
  | 'phone'
  | 'iban'
  | 'card'
  | 'nationalId'
  | 'ipAddress'
  | 'uuid'
  | 'url'
  | 'json'
  | 'date'
  | 'number'
  | 'freeText'

/** The number of characters that are checked. Later characters are ignored. */
const LOOKED_AT = 256
/** A sentence has at least this number of words and characters. A label is shorter. */
const FREE_TEXT = { words: 4, characters: 25 } as const

/** Returns the first kind that the text looks like, or null. */
export function lookOf(text: string): Look | null {
  const value = text.slice(0, LOOKED_AT).trim()
  if (value === '') return null
  return LOOKS.find(([, fits]) => fits(value))?.[0] ?? null
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
/** An e-mail address anywhere in the text, for example in a list. */
const EMAIL = /[^\s@<>"]@[^\s@<>"]{1,255}\.\p{L}[\p{L}\p{N}-]{1,62}/u
const URL_LIKE = /^[a-z][a-z0-9+.-]{1,20}:\/\/\S+$/i
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\/\d{1,2})?$/
/** An IPv6 address has `::` or eight parts. Fewer parts may be a time, such as 10:30:00. */
const IPV6 = /^(?=.*::|(?:[^:]*:){7})[0-9a-f:.]{3,45}(?:\/\d{1,3})?$/i
const DATE = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{0,2})?)?$/
const NUMBER = /^[+-]?(?:\d{1,9}|\d+[.,]\d+)$/
/** A telephone number with a plus, a leading 0, brackets or separators. */
const PHONE = /^(?=.*[+()\s/.-]|0)\+?[\d()\s/.-]{7,24}(?:\s?(?:ext\.?|x)\s?\d{1,6})?$/i
/** Ten or eleven digits are more often a telephone number than another number. */
const BARE_PHONE = /^\d{10,11}$/
/**
 * Personal numbers of some countries. Letters or separators distinguish them from other numbers, except for the French
 * NIR, which may be 13 or 15 digits.
 */
const NATIONAL_IDS = [
  /^\d{3}-\d{2}-\d{4}$/, // United States: SSN
  /^[A-CEGHJ-PR-TW-Z]{2}\s?\d{2}\s?\d{2}\s?\d{2}\s?[A-D]$/i, // United Kingdom: National Insurance
  /^[XYZ]?\d{7,8}-?[A-HJ-NP-TV-Z]$/i, // Spain: DNI, NIE
  /^[A-Z]{6}\d{2}[A-EHLMPR-T]\d{2}[A-Z]\d{3}[A-Z]$/i, // Italy: codice fiscale
  /^[12]\s?\d{2}\s?(?:0[1-9]|1[0-2])\s?(?:\d{2}|2[AB])\s?\d{3}\s?\d{3}(?:\s?\d{2})?$/i, // France: NIR
  /^\d{3}\.\d{3}\.\d{3}-\d{2}$/, // Brazil: CPF
  /^\d{4}\s\d{4}\s\d{4}$/, // India: Aadhaar
  /^756\.\d{4}\.\d{4}\.\d{2}$/, // Switzerland: AHV
  /^\d{6}[-+A]\d{3}[0-9A-Y]$/i, // Finland: HETU
  /^\d{6,8}-\d{4}$/, // Sweden: personnummer
  /^[A-Z]{5}\d{4}[A-Z]$/, // India: PAN
]

const LOOKS: readonly (readonly [Look, (value: string) => boolean])[] = [
  ['email', (value) => EMAIL.test(value)],
  ['uuid', (value) => UUID.test(value)],
  ['url', (value) => URL_LIKE.test(value)],
  ['date', (value) => DATE.test(value)],
  ['ipAddress', (value) => IPV4.test(value) || IPV6.test(value)],
  ['iban', isIban],
  ['card', isCard],
  ['nationalId', (value) => NATIONAL_IDS.some((form) => form.test(value))],
  ['number', (value) => NUMBER.test(value)],
  ['phone', isPhone],
  ['json', (value) => /^[[{]/.test(value) && /^(?:\{\s*["}]|\[)/.test(value)],
  ['freeText', (value) => value.length >= FREE_TEXT.characters && wordsOf(value) >= FREE_TEXT.words],
]

/**
 * Checks an IBAN (ISO 13616): the first four characters move to the end, each letter becomes a number from 10 on, and
 * the remainder modulo 97 must be 1.
 */
function isIban(value: string): boolean {
  const packed = value.replaceAll(' ', '').toUpperCase()
  if (!/^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$/.test(packed)) return false
  let rest = 0
  for (const sign of packed.slice(4) + packed.slice(0, 4)) {
    const number = parseInt(sign, 36)
    rest = (rest * (number > 9 ? 100 : 10) + number) % 97
  }
  return rest === 1
}

/** Checks a card number (ISO/IEC 7812): it has 13 to 19 digits, and its Luhn sum ends in 0. */
function isCard(value: string): boolean {
  const digits = value.replaceAll(/[ -]/g, '')
  if (!/^\d{13,19}$/.test(digits)) return false
  let sum = 0
  for (let n = 0; n < digits.length; n++) {
    const digit = Number(digits[digits.length - 1 - n])
    sum += n % 2 === 0 ? digit : digit > 4 ? digit * 2 - 9 : digit * 2
  }
  return sum % 10 === 0
}

/** A telephone number has 7 to 21 digits: up to 15 by ITU-T E.164, and up to six of an extension. */
function isPhone(value: string): boolean {
  const digits = value.replaceAll(/\D/g, '').length
  return digits >= 7 && digits <= 21 && (PHONE.test(value) || BARE_PHONE.test(value))
}

function wordsOf(value: string): number {
  return value.split(/\s+/u).filter((word) => /\p{L}/u.test(word)).length
}
