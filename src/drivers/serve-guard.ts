// The other end of guard-thread.ts: it runs in the thread, keeps the catalogs that it is sent, and judges.
import { parentPort } from 'node:worker_threads'
import type { Catalog } from './driver.ts'
import type { Ask, Reply } from './guard-thread.ts'

export interface Judging<Asked, Answer> {
  /** Told of each catalog once, before it is asked for: what is looked up in it can be made then. */
  readonly prepare: (catalog: Catalog) => void
  /** Null where the thread must be ended. */
  readonly judge: (catalog: Catalog, asked: Asked) => Answer | null
}

/** Answers the thread's owner until the thread is ended. */
export function serveGuard<Asked, Answer>({ prepare, judge }: Judging<Asked, Answer>): void {
  /** By the owner's number. */
  const catalogs = new Map<number, Catalog>()
  const reply = (ask: Ask<Asked>): Reply<Answer> => {
    switch (ask.kind) {
      case 'catalog': {
        const known = catalogs.get(ask.id)
        const catalog = { ...ask.part, tables: [...(known?.tables ?? []), ...ask.part.tables] }
        catalogs.set(ask.id, catalog)
        if (ask.isLast) prepare(catalog)
        return 'ready'
      }
      case 'forget':
        catalogs.delete(ask.id)
        return 'ready'
      case 'judge': {
        const catalog = catalogs.get(ask.id)
        return { answer: catalog === undefined ? null : judge(catalog, ask.asked) }
      }
      default:
        return ask satisfies never
    }
  }
  parentPort?.on('message', (ask: Ask<Asked>) => {
    parentPort?.postMessage(reply(ask))
  })
  parentPort?.postMessage('ready')
}
