// How the guard says no from deep inside a body: two throwables that confine.ts turns into a verdict, and the sentences.
// A hidden name and one that does not exist are refused by the same words; a hint names only what is exposed.
import type { BlockedKind } from '../../driver.ts'

const NAME_MAX = 300

/** A key of an object or array of the body. */
export interface Place {
  readonly container: object
  readonly key: string | number
}

/** A refusal on its way out of the walkers. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly kind: BlockedKind
  readonly blocked: string
  readonly hint: string
  /** Where it was thrown, from the inside out. */
  readonly trail: Place[] = []

  constructor(kind: BlockedKind, blocked: string, why: string, hint: string) {
    super(why)
    this.kind = kind
    this.blocked = blocked.slice(0, NAME_MAX)
    this.hint = hint
  }
}

/** What the query would make of the documents is too much: of fewer or shorter ones it may not be. */
export class Growth extends Refusal {}

/** A value or argument that is not of the form its place asks for. */
export class Broken extends Error {
  override readonly name = 'Broken'
  readonly trail: Place[] = []
}

export function refusedCollection(name: string, listed: string): Refusal {
  return new Refusal('table', name, `collection ${shown(name)} does not exist or is not exposed`, listed)
}

export function refusedPath(path: string, hint: string): Refusal {
  return new Refusal('column', path, `field ${shown(path)} does not exist or is not exposed`, hint)
}

export function refusedStage(name: string, because: string, hint: string): Refusal {
  return new Refusal('stage', name, `stage ${shown(name)} is not allowed: ${because}`, hint)
}

export function refusedOperator(name: string, because: string, hint: string): Refusal {
  return new Refusal('operator', name, `operator ${shown(name)} is not allowed here: ${because}`, hint)
}

export function refusedVariable(name: string, hint: string): Refusal {
  return new Refusal('operator', name, `variable ${shown(name)} is not defined here, or may not be read`, hint)
}

/** Too deep, too long, too many; `name` is what there is too much of. */
export function refusedLimit(name: string, why: string, hint?: string): Refusal {
  return new Refusal('limit', name, why, hint ?? 'Ask for less at once: split the query, or write it with fewer parts.')
}

export function refusedGrowth(name: string, why: string, hint: string): Growth {
  return new Growth('limit', name, why, hint)
}

/** A caller's name in a sentence: cut, and nothing in it that would break a line. */
export function shown(name: string): string {
  const plain = name.slice(0, 200).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '�')
  return plain.length > 120 ? `${plain.slice(0, 120)}…` : plain
}
