// How the guard says no from deep inside a tree: one throwable, turned into a verdict by confine.ts, and the sentences.
// A hidden name and one that does not exist are refused by the same words; a hint names only what is exposed.
import type { BlockedKind } from '../../driver.ts'

/** A refusal on its way out of the walkers. `at` is a byte offset in the caller's text, -1 where not known. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly kind: BlockedKind
  readonly blocked: string
  readonly hint: string
  readonly at: number

  constructor(kind: BlockedKind, blocked: string, why: string, hint: string, at: number | undefined) {
    super(why)
    this.kind = kind
    this.blocked = blocked
    this.hint = hint
    this.at = at ?? -1
  }
}

/** Not one SELECT, or a clause that a reader does not need; `name` is the statement or clause in capitals. */
export function refusedStatement(name: string, at?: number, hint?: string): Refusal {
  return new Refusal(
    'statement',
    name,
    `${name} is not allowed: a query is one SELECT that only reads`,
    hint ??
      'Send one SELECT (WITH, VALUES and TABLE are fine), without locking or INTO, its values written in the text.',
    at,
  )
}

export function refusedTable(name: string, exposed: string, at: number | undefined): Refusal {
  return new Refusal('table', name, `table ${name} does not exist or is not exposed`, exposed, at)
}

export function refusedColumn(name: string, shown: string, at: number | undefined): Refusal {
  return new Refusal('column', name, `column ${name} does not exist or is not exposed`, shown, at)
}

export function refusedFunction(name: string, at: number | undefined, hint?: string): Refusal {
  return new Refusal(
    'function',
    name,
    `function ${name}() does not exist or may not be called`,
    hint ??
      "Callable are PostgreSQL's own functions for numbers, text, dates, JSON, arrays, ranges, aggregates and windows, and those of known extensions; none that a user made.",
    at,
  )
}

export function refusedType(name: string, at: number | undefined, hint?: string): Refusal {
  return new Refusal(
    'type',
    name,
    `type ${name} does not exist or may not be named`,
    hint ?? "Use one of PostgreSQL's plain types (text, numeric, date, jsonb …), or an enum of the schema.",
    at,
  )
}

export function refusedOperator(name: string, hint: string, at: number | undefined, why?: string): Refusal {
  return new Refusal('operator', name, why ?? `operator ${name} may not be used here`, hint, at)
}

/** Too deep, too long, too many; `name` is what there is too much of. */
export function refusedLimit(name: string, why: string, at?: number): Refusal {
  return new Refusal('limit', name, why, 'Ask for less at once: split the query, or write it with fewer parts.', at)
}

/** A name in GROUP BY or ORDER BY that two outputs bear. */
export function ambiguousOutput(name: string, at: number | undefined): Refusal {
  const why = `column ${name} is ambiguous: more than one output is called so`
  return new Refusal('column', name, why, 'Give the outputs names unlike each other with AS.', at)
}
