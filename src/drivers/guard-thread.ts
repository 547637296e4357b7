// One worker thread of a guard, as the main thread sees it: sends messages, and remembers which catalogs the thread
// has. serve-guard.ts is the side of the worker.
import { Worker } from 'node:worker_threads'
import { setImmediate } from 'node:timers/promises'
import type { Catalog } from './driver.ts'

/** The worker answers each message with one Reply. A Task is plain data, and does not include the catalog. */
export type Message<Task> =
  /** Some of the tables of a catalog. */
  | { readonly kind: 'catalog'; readonly id: number; readonly part: Catalog; readonly isLast: boolean }
  | { readonly kind: 'forget'; readonly id: number }
  | { readonly kind: 'judge'; readonly id: number; readonly task: Task }

/** `answer` is null if the task broke the thread. The thread must then be ended. */
export type Reply<Answer> = 'ready' | { readonly answer: Answer | null }

/** How many catalogs one thread keeps. */
const CATALOGS_MAX = 4
/**
 * A message gets no further table when it has this number of columns. Serializing it then takes about a millisecond.
 */
const COLUMNS_MAX = 1_000
/** The thread must confirm a part of a catalog within this time. */
const CATALOG_MS = 5_000

const ids = new WeakMap<Catalog, number>()
let lastId = 0

function idOf(catalog: Catalog): number {
  const id = ids.get(catalog) ?? ++lastId
  ids.set(catalog, id)
  return id
}

export class GuardThread<Task, Answer> {
  readonly #worker: Worker
  readonly #deadlineMs: number
  /** The catalogs that the thread has, the least recently used first. */
  readonly #catalogIds = new Set<number>()

  /** `onReady` is called when the thread can receive messages, and `onEnd` when it fails or ends. */
  constructor(script: URL, deadlineMs: number, onReady: () => void, onEnd: () => void) {
    this.#deadlineMs = deadlineMs
    this.#worker = new Worker(script)
    // unref(), so that the thread does not keep the process alive.
    this.#worker.unref()
    this.#worker.once('message', onReady)
    this.#worker.once('error', onEnd)
    this.#worker.once('exit', onEnd)
  }

  /**
   * Only one task at a time: wait for the answer. Returns null if the thread failed or took too long. The thread must
   * then be ended.
   */
  async judge(catalog: Catalog, task: Task): Promise<Answer | null> {
    const id = idOf(catalog)
    if (!(await this.#ensureCatalog(id, catalog))) return null
    const reply = await this.#send({ kind: 'judge', id, task }, this.#deadlineMs)
    return reply === undefined || reply === 'ready' ? null : reply.answer
  }

  async end(): Promise<void> {
    await this.#worker.terminate()
  }

  /** Sends the catalog if the thread does not have it. Returns false if the thread did not confirm a part in time. */
  async #ensureCatalog(id: number, catalog: Catalog): Promise<boolean> {
    if (this.#catalogIds.delete(id)) {
      this.#catalogIds.add(id)
      return true
    }
    const [oldest] = this.#catalogIds
    if (oldest !== undefined && this.#catalogIds.size >= CATALOGS_MAX) {
      this.#catalogIds.delete(oldest)
      await this.#send({ kind: 'forget', id: oldest }, CATALOG_MS)
    }
    for (const { part, isLast } of parts(catalog)) {
      if ((await this.#send({ kind: 'catalog', id, part, isLast }, CATALOG_MS)) !== 'ready') return false
      await setImmediate()
    }
    this.#catalogIds.add(id)
    return true
  }

  #send(message: Message<Task>, withinMs: number): Promise<Reply<Answer> | undefined> {
    const { promise, resolve } = Promise.withResolvers<Reply<Answer> | undefined>()
    const onEnd = (): void => {
      resolve(undefined)
    }
    const timer = setTimeout(onEnd, withinMs)
    this.#worker.once('message', resolve)
    this.#worker.once('exit', onEnd)
    this.#worker.postMessage(message)
    return promise.finally(() => {
      clearTimeout(timer)
      this.#worker.off('message', resolve)
      this.#worker.off('exit', onEnd)
    })
  }
}

/**
 * Splits a catalog into messages of about COLUMNS_MAX columns, because serializing a long message would block the event
 * loop. A table is not split.
 */
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
