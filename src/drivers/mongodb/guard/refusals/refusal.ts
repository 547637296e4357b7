// The two errors that the guard throws while it walks a body, and their sentences. A hidden name and a name that does
// not exist get the same sentence. A hint contains only exposed collections and paths.
import type { BlockedKind } from '../../../driver.ts'

const NAME_MAX = 300

export interface Place {
  readonly container: object
  readonly key: string | number
}

/**
 * The text says what to write instead. `near` has the allowed names that the caller may mean, the most similar first.
 */
export interface Hint {
  readonly text: string
  readonly near: readonly string[]
}

export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly kind: BlockedKind
  readonly blocked: string
  readonly hint: string
  readonly near: readonly string[]
  /** The places of the error in the body, the innermost first. */
  readonly trail: Place[] = []

  constructor(kind: BlockedKind, blocked: string, why: string, hint: string | Hint) {
    super(why)
    this.kind = kind
    this.blocked = blocked.slice(0, NAME_MAX)
    this.hint = typeof hint === 'string' ? hint : hint.text
    this.near = typeof hint === 'string' ? [] : hint.near
  }
}

/** A value or an argument does not have the required form. */
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

/** `because` is null if the name is unknown, and so may be mistyped. */
export function refusedStage(name: string, because: string | null, hint: string | Hint): Refusal {
  const why = because ?? 'it is not on the list of allowed stages'
  return new Refusal('stage', name, `stage ${shown(name)} is not allowed: ${why}`, mistyped(because, hint))
}

/** `because` is null if the name is unknown, and so may be mistyped. */
export function refusedOperator(name: string, because: string | null, hint: string | Hint): Refusal {
  const why = because ?? 'it is not on the list of allowed operators'
  return new Refusal('operator', name, `operator ${shown(name)} is not allowed here: ${why}`, mistyped(because, hint))
}

/** If there is a reason, the name exists in MongoDB and is not mistyped. So the near names are dropped. */
function mistyped(because: string | null, hint: string | Hint): string | Hint {
  return because === null || typeof hint === 'string' ? hint : hint.text
}

/** Refuses an array index in a path for which mongod would take too long. */
export function refusedIndex(of: string, path: string): Refusal {
  const hint = 'Compute the element in a $set before it: {"$set": {"first": {"$arrayElemAt": ["$list", 0]}}}.'
  return refusedOperator(of, `its path ${shown(path)} has an array index`, hint)
}

export function refusedVariable(name: string, hint: Hint): Refusal {
  return new Refusal('operator', name, `variable ${shown(name)} is not defined here or is not allowed`, hint)
}

/** `name` is the property whose limit is exceeded. */
export function refusedLimit(name: string, why: string, hint?: string): Refusal {
  return new Refusal('limit', name, why, hint ?? 'Split the query into smaller queries, or write it with fewer parts.')
}

/**
 * Makes a name of the body safe for an error text. Control characters and line separators become U+FFFD. The name is
 * cut after 120 characters.
 */
export function shown(name: string): string {
  const plain = name.slice(0, 200).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '�')
  return plain.length > 120 ? `${plain.slice(0, 120)}…` : plain
}
