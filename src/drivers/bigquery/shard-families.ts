// Decides which names are shards of a family. The guard, the check of the dry run and the profile must agree about
// this, so they share this code.
import type { ShardFamily } from './captured-facts.ts'

/**
 * If a name belongs to several families, the first one in the list is found. If all families have the same number of
 * digits, the time of the search does not depend on the length of the list.
 */
export class Families<F extends ShardFamily> {
  /** The keys are the number of digits, then the prefix. */
  readonly #byDigits = new Map<number, Map<string, Known<F>>>()

  constructor(families: readonly F[]) {
    for (const [place, family] of families.entries()) {
      const byPrefix = this.#byDigits.get(family.digits) ?? new Map<string, Known<F>>()
      this.#byDigits.set(family.digits, byPrefix)
      if (!byPrefix.has(family.prefix)) byPrefix.set(family.prefix, { place, family, apart: new Set(family.apart) })
    }
  }

  of(id: string): F | null {
    const left = digitsAtEnd(id)
    let found: Known<F> | null = null
    for (const [digits, byPrefix] of this.#byDigits) {
      const known = digits <= left ? byPrefix.get(id.slice(0, id.length - digits)) : undefined
      if (known === undefined || known.apart.has(id)) continue
      if (found === null || known.place < found.place) found = known
    }
    return found?.family ?? null
  }
}

interface Known<F> {
  readonly place: number
  readonly family: F
  readonly apart: ReadonlySet<string>
}

function digitsAtEnd(id: string): number {
  let at = id.length
  while (at > 0 && isDigit(id.charCodeAt(at - 1))) at--
  return id.length - at
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}
