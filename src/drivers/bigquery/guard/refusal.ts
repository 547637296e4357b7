// Lets the guard refuse from deep inside a text: two errors that confine.ts turns into a verdict, and their sentences.
// A hidden name and a missing name get the same words. A hint names no hidden table or column.
import type { BlockedKind } from '../../driver.ts'

const NAME_MAX = 300

/** A refusal. `at` is an offset in the caller's text (UTF-16 units), or -1 if unknown. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly kind: BlockedKind
  readonly blocked: string
  readonly hint: string
  readonly at: number

  constructor(kind: BlockedKind, blocked: string, why: string, hint: string, at: number) {
    super(why)
    this.kind = kind
    this.blocked = blocked.slice(0, NAME_MAX)
    this.hint = hint
    this.at = at
  }
}

/** A syntax error in the text. */
export class Malformed extends Error {
  override readonly name = 'Malformed'
  readonly at: number

  constructor(why: string, at: number) {
    super(why)
    this.at = at
  }
}

/**
 * Returns the refusal of a statement, clause or form that a query may not contain. `name` is the refused syntax, or a
 * description such as `a second statement`. It must not contain a literal of the query, because the audit stores it.
 */
export function refusedStatement(name: string, at: number, hint?: string, why?: string): Refusal {
  return new Refusal(
    'statement',
    name,
    why ?? `${shown(name)} is not allowed in a query`,
    hint ?? 'Send one query that only reads. WITH and pipe syntax are allowed.',
    at,
  )
}

export function refusedTable(name: string, hint: string, at: number): Refusal {
  return new Refusal('table', name, `table ${shown(name)} does not exist or is not exposed`, hint, at)
}

/** Returns the refusal of a column. The runner uses the same sentence for a column that the dry run does not find. */
export function refusedColumn(name: string, at: number): Refusal {
  const why = `column ${shown(name)} does not exist or is not exposed`
  return new Refusal('column', name, why, 'Use a column that GET …/schema lists.', at)
}

/** The functions that may be called, as a sentence for a hint. */
export const CALLABLE =
  "You can call GoogleSQL's own functions for numbers, text, dates, JSON, arrays, geography, aggregates and windows; you cannot call functions that use a model or another service."
const ROUTINE = 'User-defined routines cannot be called, because they may read any table: write the expression itself.'

export function refusedFunction(name: string, at: number, hint?: string, why?: string): Refusal {
  const sentence = why ?? `function ${shown(name)}() does not exist or may not be called`
  return new Refusal('function', name, sentence, hint ?? (name.includes('.') ? ROUTINE : CALLABLE), at)
}

/** Returns the refusal of an operator or form of another dialect. `hint` has the GoogleSQL form. */
export function refusedOperator(name: string, hint: string, at: number): Refusal {
  return new Refusal('operator', name, `${shown(name)} is not GoogleSQL`, hint, at)
}

/**
 * Returns the refusal of a query that is too deep, too long, or has too many parts. `name` is the exceeded limit:
 * depth, length, tables, tokens or work. `why` gives the bound, and the actual size if it is known.
 */
export function refusedLimit(name: string, why: string, at: number, hint: string): Refusal {
  return new Refusal('limit', name, why, hint, at)
}

/**
 * Prepares a part of the query text for an error text. Replaces control characters, other invisible characters and line
 * separators with U+FFFD, and cuts the part after 120 characters.
 */
export function shown(name: string): string {
  const plain = name.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '\uFFFD')
  return plain.length > 120 ? `${plain.slice(0, 120)}…` : plain
}
