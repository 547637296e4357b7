// The two errors with which the guard refuses a query, and their sentences. A hidden name and a missing name get the
// same sentence. No hint contains a hidden name.
import type { BlockedKind } from '../../driver.ts'

const NAME_MAX = 300

/** `at` is an offset in the caller's SQL in UTF-16 units, or -1 if it is unknown. */
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

export class Malformed extends Error {
  override readonly name = 'Malformed'
  readonly at: number

  constructor(why: string, at: number) {
    super(why)
    this.at = at
  }
}

/**
 * Refuses a statement, a clause or a form. `name` is the refused syntax, or a description such as `a second statement`.
 * It must contain no literal of the query, because the audit stores it.
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

/** The runner also uses this sentence, for a column that the dry run does not find. */
export function refusedColumn(name: string, at: number): Refusal {
  const why = `column ${shown(name)} does not exist or is not exposed`
  return new Refusal('column', name, why, 'Use a column that GET …/schema lists.', at)
}

export const CALLABLE =
  "You can call GoogleSQL's own functions for numbers, text, dates, JSON, arrays, geography, aggregates and windows; you cannot call functions that use a model or another service."
const ROUTINE = 'User-defined routines cannot be called, because they may read any table: write the expression itself.'

export function refusedFunction(name: string, at: number, hint?: string, why?: string): Refusal {
  const sentence = why ?? `function ${shown(name)}() does not exist or may not be called`
  return new Refusal('function', name, sentence, hint ?? (name.includes('.') ? ROUTINE : CALLABLE), at)
}

/** Refuses an operator or a form of another dialect. `hint` says how GoogleSQL writes it. */
export function refusedOperator(name: string, hint: string, at: number): Refusal {
  return new Refusal('operator', name, `${shown(name)} is not GoogleSQL`, hint, at)
}

/**
 * Refuses a query that is too deep, too long, or has too many parts. `name` is the limit: depth, length, tables, tokens
 * or work. `why` has the limit, and the actual size if it is known.
 */
export function refusedLimit(name: string, why: string, at: number, hint: string): Refusal {
  return new Refusal('limit', name, why, hint, at)
}

/**
 * Makes a part of the query safe for an error text. Invisible characters and line separators become U+FFFD. The text is
 * cut after 120 characters.
 */
export function shown(name: string): string {
  const plain = name.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '\uFFFD')
  return plain.length > 120 ? `${plain.slice(0, 120)}…` : plain
}
