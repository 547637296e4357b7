// The entry of a guard thread, which judges long bodies.
import { serveGuard } from '../../serve-guard.ts'
import type { Answer } from './confine.ts'
import { exposedOf } from './documents/exposed.ts'
import { IN_THREAD, judge } from './judge.ts'
import { rereadBody } from './body/read-body.ts'
import { packQuery } from './query-transfer.ts'
import type { Asked } from './judge-threads.ts'

serveGuard<Asked, Answer>({
  prepare: exposedOf,
  judge: (catalog, { text, rowCap }) => {
    const judged = judge({ body: rereadBody(text), catalog, rowCap }, IN_THREAD)
    return judged.kind === 'made' ? { kind: 'packed', query: packQuery(judged.query) } : judged
  },
})
