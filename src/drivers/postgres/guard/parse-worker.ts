// Judges texts in a thread of its own, which its owner ends as soon as the parser breaks: what PostgreSQL's memory looks
// like after that, nobody knows.
import { parentPort } from 'node:worker_threads'
import { loadModule } from 'libpg-query'
import type { Catalog } from '../../driver.ts'
import { exposedOf } from './exposed.ts'
import { IN_THREAD, judge, locate } from './judge.ts'
import { parseText } from './parse-text.ts'
import type { Answer, Ask } from './thread.ts'

/** Catalogs that this thread was sent, by the owner's number. */
const catalogs = new Map<number, Catalog>()

function answer(ask: Ask): Answer | 'ready' {
  switch (ask.kind) {
    case 'catalog': {
      const known = catalogs.get(ask.id)
      const catalog = { ...ask.part, tables: [...(known?.tables ?? []), ...ask.part.tables] }
      catalogs.set(ask.id, catalog)
      if (ask.isLast) exposedOf(catalog)
      return 'ready'
    }
    case 'forget':
      catalogs.delete(ask.id)
      return 'ready'
    case 'judge': {
      const catalog = catalogs.get(ask.id)
      if (!catalog) return { kind: 'lost' }
      if (!ask.sought) return judge(parseText, { ...ask, catalog }, IN_THREAD)
      return { kind: 'place', at: locate(parseText, { ...ask, catalog }, ask.sought) }
    }
    default:
      return ask satisfies never
  }
}

await loadModule()
parentPort?.on('message', (ask: Ask) => {
  parentPort?.postMessage(answer(ask))
})
parentPort?.postMessage('ready')
