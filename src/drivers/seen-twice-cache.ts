// Caches results only for keys that were seen at least twice. A key that was seen once can push out another key that
// was seen once, but no cached result.

export class SeenTwice<T> {
  readonly #most: number
  readonly #known = new Map<string, T>()
  readonly #once = new Set<string>()

  /** `most` is the maximum number of cached results, and also of keys that were seen once. */
  constructor(most: number) {
    this.#most = most
  }

  get(key: string): T | undefined {
    return this.#known.get(key)
  }

  /** The first call with a key remembers it and returns false. The second call forgets it and returns true. */
  see(key: string): boolean {
    if (this.#once.delete(key)) return true
    if (this.#once.size >= this.#most) this.#once.delete(first(this.#once))
    this.#once.add(key)
    return false
  }

  keep(key: string, known: T): void {
    if (this.#known.size >= this.#most) this.#known.delete(first(this.#known.keys()))
    this.#known.set(key, known)
  }
}

function first(keys: Iterable<string>): string {
  const [key = ''] = keys
  return key
}
