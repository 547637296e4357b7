// The variables in sight at one place of a query. Each scope holds its own and points to the one around it: nothing is
// copied, however many there are. Scopes are nested no deeper than a body is.

export class Variables<T> {
  readonly #around: Variables<T> | null
  readonly #own: ReadonlyMap<string, T>

  constructor(around: Variables<T> | null = null, own: ReadonlyMap<string, T> = new Map()) {
    this.#around = around
    this.#own = own
  }

  get isEmpty(): boolean {
    return this.#own.size === 0 && (this.#around === null || this.#around.isEmpty)
  }

  /** A scope within this one. */
  with(own: ReadonlyMap<string, T>): Variables<T> {
    return new Variables(this, own)
  }

  has(name: string): boolean {
    return this.#own.has(name) || (this.#around?.has(name) ?? false)
  }

  get(name: string): T | undefined {
    return this.#own.has(name) ? this.#own.get(name) : this.#around?.get(name)
  }

  /** The innermost first. */
  *names(): Generator<string> {
    yield* this.#own.keys()
    if (this.#around !== null) yield* this.#around.names()
  }
}
