// Counts the top-level keys of sampled JSON objects and the types of their values. profiles/privacy.ts decides what is
// stored.
import type { SeenKey } from './driver.ts'

/**
 * The maximum number of distinct keys that are counted. Objects with more keys are maps whose keys are data, not names.
 */
const KEYS_MAX = 500
/** The maximum length of a key that counts as a name. A longer key is data. */
export const KEY_CHARS_MAX = 64

export class KeySample {
  readonly #keys = new Map<string, { rows: number; readonly types: Set<string> }>()
  #objects = 0
  #tooMany = false

  /** Adds one object of the sample. `pairs` has the type of the value for each key of the object. */
  add(pairs: ReadonlyMap<string, string>): void {
    this.#objects++
    for (const [key, type] of pairs) {
      const known = this.#keys.get(key)
      if (known !== undefined) {
        known.rows++
        known.types.add(type)
      } else if (this.#keys.size < KEYS_MAX) this.#keys.set(key, { rows: 1, types: new Set([type]) })
      else this.#tooMany = true
    }
  }

  /**
   * Returns the keys, most common first. Returns null if no object was sampled, or if the objects have more than
   * KEYS_MAX distinct keys.
   */
  keys(): readonly SeenKey[] | null {
    if (this.#objects === 0 || this.#tooMany) return null
    return [...this.#keys]
      .sort(([, a], [, b]) => b.rows - a.rows)
      .map(([key, { rows, types }]) => ({ key, rows, share: rows / this.#objects, types: [...types].sort() }))
  }
}
