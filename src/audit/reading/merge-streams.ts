// Merges two ordered streams, and reads each only as far as needed.

/** If the reader stops early, both streams end. */
export async function* merged<T>(
  one: AsyncIterable<readonly T[]>,
  other: AsyncIterable<readonly T[]>,
  isBefore: (a: T, b: T) => boolean,
): AsyncIterable<readonly T[]> {
  await using a = new Ahead(one)
  await using b = new Ahead(other)
  for (;;) {
    const [x, y] = [await a.hasMore(), await b.hasMore()]
    if (!x && !y) return
    if (x && y) yield woven(a, b, isBefore)
    else yield (x ? a : b).takeRest()
  }
}

function woven<T>(a: Ahead<T>, b: Ahead<T>, isBefore: (a: T, b: T) => boolean): readonly T[] {
  const taken: T[] = []
  for (;;) {
    const [x, y] = [a.first, b.first]
    if (x === undefined || y === undefined) return taken
    if (isBefore(y, x)) {
      taken.push(y)
      b.skip()
    } else {
      taken.push(x)
      a.skip()
    }
  }
}

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

  async hasMore(): Promise<boolean> {
    while (this.#taken === this.#portion.length) {
      const next = await this.#from.next()
      if (next.done === true) return false
      this.#portion = next.value
      this.#taken = 0
    }
    return true
  }

  skip(): void {
    this.#taken++
  }

  takeRest(): readonly T[] {
    const rest = this.#portion.slice(this.#taken)
    this.#taken = this.#portion.length
    return rest
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#from.return?.()
  }
}
