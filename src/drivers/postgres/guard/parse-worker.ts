// Runs in a worker thread: judges texts, and maps positions in printed texts. If the parser fails, its memory is
// undefined, so the main thread ends this thread.
import { loadModule } from 'libpg-query'
import { serveGuard } from '../../serve-guard.ts'
import { exposedOf } from './exposed.ts'
import { IN_THREAD, judge, locate } from './judge.ts'
import { parseText } from './syntax/parse-text.ts'
import type { Answer, Asked } from './syntax/parser.ts'

await loadModule()
serveGuard<Asked, Answer>({
  prepare: exposedOf,
  judge: (catalog, { sought, ...asked }) => {
    if (sought) return { kind: 'place', at: locate(parseText, { ...asked, catalog }, sought) }
    const judged = judge(parseText, { ...asked, catalog }, IN_THREAD)
    return judged.kind === 'lost' ? null : judged
  },
})
