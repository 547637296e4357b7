// Defines the two errors that the guard throws while it walks a body, and their sentences. judge.ts turns an error into
// a verdict. Hidden names and names that do not exist get the same sentence. The only collections and paths that a hint
// names are exposed ones.
import type { BlockedKind } from '../../../driver.ts'

const NAME_MAX = 300

/** One key of an object or array in the body. */
export interface Place {
  readonly container: object
  readonly key: string | number
}

/** A hint that says what to write instead. `near` has the allowed names that the caller may mean, the nearest first. */
export interface Hint {
  readonly text: string
  readonly near: readonly string[]
}

/** The query is not allowed. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly kind: BlockedKind
  readonly blocked: string
  readonly hint: string
  /** The near names of the hint. Empty if no name is near. */
  readonly near: readonly string[]
  /** The place of the error in the body, innermost first. */
  readonly trail: Place[] = []

  constructor(kind: BlockedKind, blocked: string, why: string, hint: string | Hint) {
    super(why)
    this.kind = kind
    this.blocked = blocked.slice(0, NAME_MAX)
    this.hint = typeof hint === 'string' ? hint : hint.text
    this.near = typeof hint === 'string' ? [] : hint.near
  }
}

/** A value or argument does not have the form that its place requires. */
export class Broken extends Error {
  override readonly name = 'Broken'
  readonly trail: Place[] = []
}

export function refusedCollection(name: string, listed: Hint): Refusal {
  return new Refusal('table', name, `collection ${shown(name)} does not exist or is not exposed`, listed)
}

export function refusedPath(path: string, hint: string | Hint): Refusal {
  return new Refusal('column', path, `field ${shown(path)} does not exist or is not exposed`, hint)
}

/** Returns the refusal of a stage. `because` is the reason. It is null if the name is unknown and may be mistyped. */
export function refusedStage(name: string, because: string | null, hint: string | Hint): Refusal {
  const why = because ?? 'it is not on the list of allowed stages'
  return new Refusal('stage', name, `stage ${shown(name)} is not allowed: ${why}`, mistyped(because, hint))
}

/** Returns the refusal of an operator. `because` is as in refusedStage(). */
export function refusedOperator(name: string, because: string | null, hint: string | Hint): Refusal {
  const why = because ?? 'it is not on the list of allowed operators'
  return new Refusal('operator', name, `operator ${shown(name)} is not allowed here: ${why}`, mistyped(because, hint))
}

/** Drops the near names if there is a reason: a name with a reason exists in MongoDB, so it is not a typing error. */
function mistyped(because: string | null, hint: string | Hint): string | Hint {
  return because === null || typeof hint === 'string' ? hint : hint.text
}

/** Returns the refusal of an array index in a path for which mongod would take too long. */
export function refusedIndex(of: string, path: string): Refusal {
  const hint = 'Compute the element in a $set before it: {"$set": {"first": {"$arrayElemAt": ["$list", 0]}}}.'
  return refusedOperator(of, `its path ${shown(path)} has an array index`, hint)
}

export function refusedVariable(name: string, hint: Hint): Refusal {
  return new Refusal('operator', name, `variable ${shown(name)} is not defined here or is not allowed`, hint)
}

/** Returns the refusal of a query that exceeds a bound. `name` names the bounded property. */
export function refusedLimit(name: string, why: string, hint?: string): Refusal {
  return new Refusal('limit', name, why, hint ?? 'Split the query into smaller queries, or write it with fewer parts.')
}

/**
 * Prepares a name from the body for an error text. Replaces control characters and line separators with U+FFFD, and
 * cuts the name after 120 characters.
 */
export function shown(name: string): string {
  const plain = name.slice(0, 200).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '�')
  return plain.length > 120 ? `${plain.slice(0, 120)}…` : plain
}
