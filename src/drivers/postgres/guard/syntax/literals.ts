// Prints literals for the oldest supported server. Before version 16, PostgreSQL reads 0x1F and 1_000 as a number and
// an alias, so they become decimal.
import type { Node, Struct } from '../allowed/allowed-nodes.ts'
import { refusedStatement } from '../refusal.ts'

const DECIMAL = /^-?(\d+(?:\.\d*)?|\.\d+)([eE][-+]?\d+)?$/
const BITS = /^(b[01]*|x[0-9a-fA-F]*)$/

/** Returns a constant as it is printed. Throws Refusal for an unknown kind of constant or form of number. */
export function constant(value: Struct<'A_Const'>): Node {
  if (value.isnull) return { A_Const: { isnull: true } }
  if (value.ival) return { A_Const: { ival: value.ival.ival ? { ival: value.ival.ival } : {} } }
  if (value.fval) return number(value.fval.fval ?? '0', value.location)
  if (value.boolval) return { A_Const: { boolval: value.boolval.boolval ? { boolval: true } : {} } }
  if (value.sval) return { A_Const: { sval: { sval: value.sval.sval ?? '' } } }
  const bits = value.bsval?.bsval ?? ''
  if (!value.bsval || !BITS.test(bits)) throw refusedStatement('a literal of unknown kind', value.location)
  return { A_Const: { bsval: { bsval: bits } } }
}

function number(text: string, at: number | undefined): Node {
  const plain = text.replaceAll('_', '')
  const based = /^(-?)(0[xXoObB][0-9a-fA-F]+)$/.exec(plain)
  const fval = based ? `${based[1] ?? ''}${BigInt(based[2] ?? '0')}` : plain
  if (!DECIMAL.test(fval)) throw refusedStatement(`the number ${text}`, at)
  const small = /^-?\d+$/.test(fval) ? Number(fval) : Number.NaN
  // PostgreSQL reads the printed number as an integer, so the confined tree must have an integer too.
  if (Math.abs(small) <= 2_147_483_647) return { A_Const: { ival: small === 0 ? {} : { ival: small } } }
  return { A_Const: { fval: { fval } } }
}
