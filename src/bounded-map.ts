// A map with a maximum number of entries and a maximum total weight. Drops the least recently used entries.

/** An entry that is heavier than `weightMax` is kept, but alone. */
export class BoundedMap<K, V> {
  readonly #entries = new Map<K, { readonly value: V; readonly weight: number }>()
  readonly #entriesMax: number
  readonly #weightMax: number
  #weight = 0
  #newest: K | undefined

  constructor(entriesMax: number, weightMax = Number.POSITIVE_INFINITY) {
    this.#entriesMax = entriesMax
    this.#weightMax = weightMax
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined || key === this.#newest) return entry?.value
    // The first entry is dropped next, so the used entry moves to the end.
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    this.#newest = key
    return entry.value
  }

  set(key: K, value: V, weight = 1): void {
    this.delete(key)
    this.#entries.set(key, { value, weight })
    this.#newest = key
    this.#weight += weight
    for (const oldest of this.#entries.keys()) {
      const fits = this.#entries.size <= this.#entriesMax && this.#weight <= this.#weightMax
      if (fits || oldest === key) return
      this.delete(oldest)
    }
  }

  delete(key: K): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#weight -= entry.weight
    this.#entries.delete(key)
  }

  clear(): void {
    this.#entries.clear()
    this.#weight = 0
  }
}
