// Preloaded by bench/audit.ts into one of two services (node --import): replaces the audit with one that writes
// nothing. The service itself cannot run without an audit.
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
