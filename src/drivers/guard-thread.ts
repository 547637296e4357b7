// Runs one worker thread of a guard: sends messages to the thread, and remembers which catalogs the thread has. The
// pool in guard-threads.ts owns the thread. serve-guard.ts is the thread's side. The driver of each kind of database
// decides what the thread does.
import { Worker } from 'node:worker_threads'
import { setImmediate } from 'node:timers/promises'
import type { Catalog } from './driver.ts'

/**
 * A message to the thread. The thread answers each message with one Reply. `Task` is plain data, without the catalog.
 */
export type Message<Task> =
  /** A part of a catalog: some of its tables. */
  | { readonly kind: 'catalog'; readonly id: number; readonly part: Catalog; readonly isLast: boolean }
  | { readonly kind: 'forget'; readonly id: number }
  | { readonly kind: 'judge'; readonly id: number; readonly task: Task }

/** `answer` is null if the task broke the thread. The owner must then end the thread. */
export type Reply<Answer> = 'ready' | { readonly answer: Answer | null }

/** The maximum number of catalogs that one thread keeps. */
const CATALOGS_MAX = 4
/** A message ends with the table that reaches this number of columns, so serializing takes about a millisecond. */
const COLUMNS_MAX = 1_000
/** The timeout for the thread's reply to a part of a catalog. */
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
  /** The ids of the catalogs in the thread, ordered by last use. */
  readonly #catalogIds = new Set<number>()

  /** Calls `onReady` when the thread can receive messages, and `onEnd` when the thread fails or ends. */
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
   * Judges one task. The caller must wait for the answer before the next call. Returns null if the thread broke or took
   * too long. The caller must then end the thread.
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

  /** Sends the catalog unless the thread has it. Returns false if the thread did not confirm a part in time. */
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

  /** Returns undefined if the thread ended or did not reply in time. */
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
 * Splits a catalog into messages of about COLUMNS_MAX columns, so that serializing a message does not block the event
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
