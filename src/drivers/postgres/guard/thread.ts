// One thread that judges: what it is sent, what it answers, and which catalogs it holds. Its owner is the pool in parse.ts.
import { Worker } from 'node:worker_threads'
import { setImmediate } from 'node:timers/promises'
import type { Catalog } from '../../driver.ts'
import type { ParamForm } from './params.ts'
import type { Case, Judged, Sought } from './parser.ts'

/** What was judged; or, of a place that was sought, where it is. */
export type Answer = Judged | { readonly kind: 'place'; readonly at: number | null }

/** A message to the thread; each is answered by one: 'ready', or what was judged. */
export type Ask =
  /** A catalog, some tables at a time. */
  | { readonly kind: 'catalog'; readonly id: number; readonly part: Catalog; readonly isLast: boolean }
  | { readonly kind: 'forget'; readonly id: number }
  | {
      readonly kind: 'judge'
      readonly id: number
      readonly text: string
      readonly rowCap: number
      readonly params: readonly ParamForm[]
      readonly sought?: Sought
    }

/** Catalogs that one thread keeps. */
const KEPT_MAX = 4
/** Columns in one message: to write it takes about a millisecond. */
const COLUMNS_MAX = 1_000

const ids = new WeakMap<Catalog, number>()
let lastId = 0

function idOf(catalog: Catalog): number {
  const id = ids.get(catalog) ?? ++lastId
  ids.set(catalog, id)
  return id
}

export class Thread {
  readonly #worker: Worker
  readonly #deadlineMs: number
  /** In the order of their last use. */
  readonly #kept = new Set<number>()

  /** `onEnd` is told once, when the thread has ended by itself. */
  constructor(deadlineMs: number, onReady: () => void, onEnd: () => void) {
    this.#deadlineMs = deadlineMs
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
    this.#worker = new Worker(new URL(`./parse-worker.${extension}`, import.meta.url))
    // It must not keep the process alive.
    this.#worker.unref()
    this.#worker.once('message', onReady)
    this.#worker.once('error', onEnd)
    this.#worker.once('exit', onEnd)
  }

  /** One at a time. `lost` where the thread broke or took too long: it must be ended then. */
  async judge({ text, catalog, rowCap, params }: Case, sought?: Sought): Promise<Answer> {
    const id = idOf(catalog)
    if (!(await this.#holds(id, catalog))) return { kind: 'lost' }
    const judged = await this.#ask(
      { kind: 'judge', id, text, rowCap, params, ...(sought && { sought }) },
      this.#deadlineMs,
    )
    return isAnswer(judged) ? judged : { kind: 'lost' }
  }

  async end(): Promise<void> {
    await this.#worker.terminate()
  }

  /** Sends the catalog where the thread has not got it. False where it took too long. */
  async #holds(id: number, catalog: Catalog): Promise<boolean> {
    if (this.#kept.delete(id)) {
      this.#kept.add(id)
      return true
    }
    const [oldest] = this.#kept
    if (oldest !== undefined && this.#kept.size >= KEPT_MAX) {
      this.#kept.delete(oldest)
      await this.#ask({ kind: 'forget', id: oldest }, CATALOG_MS)
    }
    for (const { part, isLast } of parts(catalog)) {
      if ((await this.#ask({ kind: 'catalog', id, part, isLast }, CATALOG_MS)) !== 'ready') return false
      await setImmediate()
    }
    this.#kept.add(id)
    return true
  }

  /** Undefined where nothing came in time. */
  #ask(ask: Ask, withinMs: number): Promise<unknown> {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    const onEnd = (): void => {
      resolve(undefined)
    }
    const timer = setTimeout(onEnd, withinMs)
    this.#worker.once('message', resolve)
    this.#worker.once('exit', onEnd)
    this.#worker.postMessage(ask)
    return promise.finally(() => {
      clearTimeout(timer)
      this.#worker.off('message', resolve)
      this.#worker.off('exit', onEnd)
    })
  }
}

/** How long a thread may take to read a part of a catalog. */
const CATALOG_MS = 5_000

/** A catalog in messages of so many columns each, so that writing one holds nobody up. */
function* parts(catalog: Catalog): Generator<{ readonly part: Catalog; readonly isLast: boolean }> {
  let tables: Catalog['tables'][number][] = []
  let columns = 0
  const { tables: all, ...rest } = catalog
  for (const table of all) {
    tables.push(table)
    columns += table.columns.length
    if (columns < COLUMNS_MAX) continue
    yield { part: { capturedAt: '', capture: null, tables }, isLast: false }
    tables = []
    columns = 0
  }
  yield { part: { ...rest, tables }, isLast: true }
}

function isAnswer(message: unknown): message is Answer {
  return typeof message === 'object' && message !== null && 'kind' in message
}
