// The worker's side of guard-thread.ts: keeps the catalogs that it receives, and judges tasks.
import { parentPort } from 'node:worker_threads'
import type { Catalog } from './driver.ts'
import type { Message, Reply } from './guard-thread.ts'

export interface Judging<Task, Answer> {
  /** Called when all parts of a catalog have arrived. Builds the look-up that the tasks need. */
  readonly prepare: (catalog: Catalog) => void
  /** Returns null if the thread must be ended. */
  readonly judge: (catalog: Catalog, task: Task) => Answer | null
}

/** Answers messages until the thread is ended. */
export function serveGuard<Task, Answer>({ prepare, judge }: Judging<Task, Answer>): void {
  /** The key is the id in the messages. */
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
