// The variables that are visible at one point of a query. A scope has its own variables and refers to the enclosing
// scope, so nothing is copied. Scopes are nested no deeper than the body.

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

  with(own: ReadonlyMap<string, T>): Variables<T> {
    return new Variables(this, own)
  }

  has(name: string): boolean {
    return this.#own.has(name) || (this.#around?.has(name) ?? false)
  }

  get(name: string): T | undefined {
    return this.#own.has(name) ? this.#own.get(name) : this.#around?.get(name)
  }

  /** The names of the innermost scope come first. */
  *names(): Generator<string> {
    yield* this.#own.keys()
    if (this.#around !== null) yield* this.#around.names()
  }
}
