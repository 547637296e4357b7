// Judges texts and maps positions in a worker thread. If the parser fails, the main thread terminates this thread,
// because the parser's memory is then undefined.
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
