// Writes a Decimal128 as a JSON number if JSON readers keep it exactly, otherwise as a string
// (docs/contract.md#values).

const DIGITS_MAX = 15
const EXPONENT_BIAS = 6176
const COEFFICIENT_MAX = 10n ** 34n - 1n
const BIGGEST = 300

/** `low` and `high` are the two halves of the Decimal128, with 64 bits each. */
export function writeDecimal(low: bigint, high: bigint): string {
  const sign = high >> 63n === 1n ? '-' : ''
  const combination = Number((high >> 58n) & 0x1fn)
  if (combination === 0x1f) return '"NaN"'
  if (combination === 0x1e) return `"${sign}Infinity"`
  const isLarge = combination >> 3 === 3
  const exponent = Number((high >> (isLarge ? 47n : 49n)) & 0x3fffn) - EXPONENT_BIAS
  // In the large encoding, every coefficient has more than 34 digits. IEEE 754 says that this means zero.
  const held = isLarge ? 0n : ((high & 0x1_ffff_ffff_ffffn) << 64n) | low
  const coefficient = held > COEFFICIENT_MAX ? 0n : held
  const text = sign + decimalText(coefficient.toString(), exponent)
  return isPlain(coefficient, exponent) ? text : `"${text}"`
}

/** The string form of the Decimal128 specification is valid JSON. */
function decimalText(digits: string, exponent: number): string {
  const adjusted = exponent + digits.length - 1
  if (exponent > 0 || adjusted < -6) {
    const rest = digits.slice(1)
    return `${digits[0] ?? '0'}${rest === '' ? '' : `.${rest}`}E${adjusted < 0 ? '' : '+'}${adjusted}`
  }
  if (exponent === 0) return digits
  const padded = digits.padStart(1 - exponent, '0')
  return `${padded.slice(0, exponent)}.${padded.slice(exponent)}`
}

function isPlain(coefficient: bigint, exponent: number): boolean {
  if (coefficient === 0n) return true
  const digits = coefficient.toString()
  const significant = digits.replace(/0+$/, '').length
  const adjusted = exponent + digits.length - 1
  return significant <= DIGITS_MAX && adjusted >= -BIGGEST && adjusted < BIGGEST
}
