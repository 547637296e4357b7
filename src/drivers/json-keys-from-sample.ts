// Counts the top-level keys of sampled JSON objects, and the types of their values. What is stored is decided in
// profiles/privacy.ts.
import type { SeenKey } from './driver.ts'

/** If the objects have more keys than this, the keys are data, and not names. */
const KEYS_MAX = 500
/** A longer key is data, and not a name. */
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
   * Returns the keys, the most common first. Returns null if there was no object, or more than KEYS_MAX different keys.
   */
  keys(): readonly SeenKey[] | null {
    if (this.#objects === 0 || this.#tooMany) return null
    return [...this.#keys]
      .sort(([, a], [, b]) => b.rows - a.rows)
      .map(([key, { rows, types }]) => ({ key, rows, share: rows / this.#objects, types: [...types].sort() }))
  }
}
