// Remembers what was worked out for a key that was seen twice. Keys that are seen once displace each other, never what is known.

export class SeenTwice<T> {
  readonly #most: number
  readonly #known = new Map<string, T>()
  readonly #once = new Set<string>()

  /** At most so many keys are known, and so many more seen once. */
  constructor(most: number) {
    this.#most = most
  }

  get(key: string): T | undefined {
    return this.#known.get(key)
  }

  /** Whether the key was seen before; it was now. */
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
