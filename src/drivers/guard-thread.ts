// One thread of a guard: what it is sent, what it answers, and which catalogs it holds. Its owner is the pool in
// guard-threads.ts; the other end is serve-guard.ts. What is judged, and how, the driver of each kind says.
import { Worker } from 'node:worker_threads'
import { setImmediate } from 'node:timers/promises'
import type { Catalog } from './driver.ts'

/** A message to the thread; each is answered by one Reply. `Asked` is plain data, without the catalog. */
export type Ask<Asked> =
  /** A catalog, some tables at a time. */
  | { readonly kind: 'catalog'; readonly id: number; readonly part: Catalog; readonly isLast: boolean }
  | { readonly kind: 'forget'; readonly id: number }
  | { readonly kind: 'judge'; readonly id: number; readonly asked: Asked }

/** `answer: null` where the thread must be ended: the text broke it. */
export type Reply<Answer> = 'ready' | { readonly answer: Answer | null }

/** Catalogs that one thread keeps. */
const KEPT_MAX = 4
/** Columns in one message: to write it takes about a millisecond. */
const COLUMNS_MAX = 1_000
/** How long a thread may take to read a part of a catalog. */
const CATALOG_MS = 5_000

const ids = new WeakMap<Catalog, number>()
let lastId = 0

function idOf(catalog: Catalog): number {
  const id = ids.get(catalog) ?? ++lastId
  ids.set(catalog, id)
  return id
}

export class GuardThread<Asked, Answer> {
  readonly #worker: Worker
  readonly #deadlineMs: number
  /** In the order of their last use. */
  readonly #kept = new Set<number>()

  /** `onEnd` is told once, when the thread has ended by itself. */
  constructor(script: URL, deadlineMs: number, onReady: () => void, onEnd: () => void) {
    this.#deadlineMs = deadlineMs
    this.#worker = new Worker(script)
    // It must not keep the process alive.
    this.#worker.unref()
    this.#worker.once('message', onReady)
    this.#worker.once('error', onEnd)
    this.#worker.once('exit', onEnd)
  }

  /** One at a time. Null where the thread broke or took too long: it must be ended then. */
  async judge(catalog: Catalog, asked: Asked): Promise<Answer | null> {
    const id = idOf(catalog)
    if (!(await this.#holds(id, catalog))) return null
    const reply = await this.#ask({ kind: 'judge', id, asked }, this.#deadlineMs)
    return reply === undefined || reply === 'ready' ? null : reply.answer
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
  #ask(ask: Ask<Asked>, withinMs: number): Promise<Reply<Answer> | undefined> {
    const { promise, resolve } = Promise.withResolvers<Reply<Answer> | undefined>()
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
