// Runs in a worker thread, as the other end of guard-thread.ts: stores the catalogs that it receives, and judges tasks.
import { parentPort } from 'node:worker_threads'
import type { Catalog } from './driver.ts'
import type { Message, Reply } from './guard-thread.ts'

export interface Judging<Task, Answer> {
  /** Called when all parts of a catalog have arrived, before its first task, to build the look-up of the catalog. */
  readonly prepare: (catalog: Catalog) => void
  /** Returns null if the thread must be ended. */
  readonly judge: (catalog: Catalog, task: Task) => Answer | null
}

/** Answers the messages of the owner until the thread is ended. */
export function serveGuard<Task, Answer>({ prepare, judge }: Judging<Task, Answer>): void {
  /** The catalogs, by the id that the owner gave them. */
  const catalogs = new Map<number, Catalog>()
  const reply = (message: Message<Task>): Reply<Answer> => {
    switch (message.kind) {
      case 'catalog': {
        const known = catalogs.get(message.id)
        const catalog = { ...message.part, tables: [...(known?.tables ?? []), ...message.part.tables] }
        catalogs.set(message.id, catalog)
        if (message.isLast) prepare(catalog)
        return 'ready'
      }
      case 'forget':
        catalogs.delete(message.id)
        return 'ready'
      case 'judge': {
        const catalog = catalogs.get(message.id)
        return { answer: catalog === undefined ? null : judge(catalog, message.task) }
      }
      default:
        return message satisfies never
    }
  }
  parentPort?.on('message', (message: Message<Task>) => {
    parentPort?.postMessage(reply(message))
  })
  parentPort?.postMessage('ready')
}
