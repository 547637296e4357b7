// Two orders as one, a portion at a time, each read only as far as it is needed.

/** `isBefore`: whether the first belongs before the second. Whoever stops in the middle ends both. */
export async function* merged<T>(
  one: AsyncIterable<readonly T[]>,
  other: AsyncIterable<readonly T[]>,
  isBefore: (a: T, b: T) => boolean,
): AsyncIterable<readonly T[]> {
  await using a = new Ahead(one)
  await using b = new Ahead(other)
  for (;;) {
    const [x, y] = [await a.portion(), await b.portion()]
    if (x.length === 0 && y.length === 0) return
    if (x.length === 0 || y.length === 0) {
      yield x.length === 0 ? b.take(y.length) : a.take(x.length)
      continue
    }
    yield woven(a, b, isBefore)
  }
}

/** Until one of the two portions is at its end. */
function woven<T>(a: Ahead<T>, b: Ahead<T>, isBefore: (a: T, b: T) => boolean): readonly T[] {
  const taken: T[] = []
  for (;;) {
    const [x, y] = [a.first, b.first]
    if (x === undefined || y === undefined) return taken
    taken.push(...(isBefore(y, x) ? b.take(1) : a.take(1)))
  }
}

/** What was read and not yet taken. */
class Ahead<T> implements AsyncDisposable {
  readonly #from: AsyncIterator<readonly T[]>
  #portion: readonly T[] = []
  #taken = 0

  constructor(from: AsyncIterable<readonly T[]>) {
    this.#from = from[Symbol.asyncIterator]()
  }

  get first(): T | undefined {
    return this.#portion[this.#taken]
  }

  /** What is left of this portion, or the next; nothing at the end. */
  async portion(): Promise<readonly T[]> {
    while (this.#taken === this.#portion.length) {
      const next = await this.#from.next()
      if (next.done === true) return []
      this.#portion = next.value
      this.#taken = 0
    }
    return this.#portion.slice(this.#taken)
  }

  take(count: number): readonly T[] {
    const from = this.#taken
    this.#taken += count
    return this.#portion.slice(from, this.#taken)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#from.return?.()
  }
}
