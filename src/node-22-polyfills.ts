// Provides AsyncDisposableStack for the bundle, which Node 22 lacks. (The bundler rewrites `using`.) Under Node 22,
// also suppresses Node's warning about node:sqlite.

type Close = () => unknown

/** Like the standard class, except that it throws only the first error if several resources fail. */
export class Disposables implements AsyncDisposableStack {
  readonly [Symbol.toStringTag] = 'AsyncDisposableStack'
  #closes: Close[] | null = []

  get disposed(): boolean {
    return this.#closes === null
  }

  use<T extends AsyncDisposable | Disposable | null | undefined>(value: T): T {
    if (value === null || value === undefined) return value
    this.defer(() => (Symbol.asyncDispose in value ? value[Symbol.asyncDispose]() : value[Symbol.dispose]()))
    return value
  }

  adopt<T>(value: T, close: (value: T) => PromiseLike<void> | void): T {
    this.defer(() => close(value))
    return value
  }

  defer(close: () => PromiseLike<void> | void): void {
    this.#open().push(close)
  }

  move(): AsyncDisposableStack {
    const other = new Disposables()
    other.#closes = this.#open()
    this.#closes = null
    return other
  }

  async disposeAsync(): Promise<void> {
    const closes = this.#closes ?? []
    this.#closes = null
    let failure: { readonly error: unknown } | null = null
    for (const close of closes.reverse()) {
      try {
        await close()
      } catch (error) {
        failure ??= { error }
      }
    }
    if (failure !== null) throw failure.error
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.disposeAsync()
  }

  #open(): Close[] {
    if (this.#closes === null) throw new ReferenceError('this stack has been disposed of')
    return this.#closes
  }
}

globalThis.AsyncDisposableStack ??= Disposables

const { emitWarning } = process
if (process.versions.node.startsWith('22.')) {
  // The warning says that node:sqlite may change. Vitrine is tested with Node 22, so operators need not see it.
  process.emitWarning = (...args: unknown[]): void => {
    const [warning] = args
    if (!String(warning).startsWith('SQLite is an experimental feature')) Reflect.apply(emitWarning, process, args)
  }
}
