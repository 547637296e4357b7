// The service cannot run without an audit. So bench/audit.ts preloads this file (node --import) in one of its two
// services. The file replaces the audit by one that writes nothing.
import { registerHooks } from 'node:module'

const NONE = `
export function openAudit() {
  const nothing = async () => undefined
  return {
    behind: false,
    change: nothing,
    record: () => undefined,
    folded: () => undefined,
    refused: () => undefined,
    teamEnded: nothing,
    flush: nothing,
    page: async () => ({ items: [], nextCursor: null }),
    all: async function* () {},
    usage: async () => [],
    prune: nothing,
    [Symbol.asyncDispose]: nothing,
  }
}
export { outcomeOf } from './audit.ts?kept'
`

registerHooks({
  load(url, context, nextLoad) {
    if (!/\/src\/audit\/audit\.ts$/.test(url)) return nextLoad(url, context)
    return { format: 'module', source: NONE, shortCircuit: true }
  },
})
