import type { AuditItem } from '../../api/types.ts'

/** Converts an operation id to words: `runQuery` becomes `Run query`. */
export function actionWords(action: string): string {
  const words = action.replace(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`)
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** Returns the name of the caller: the key or the agent, or else the person. */
export function callerWords({ actor, keyName, grantName }: AuditItem): string {
  return keyName ?? grantName ?? actor.name ?? (actor.accountId === null ? 'Somebody who left' : 'Somebody')
}

export const VIA_WORDS = { API_KEY: 'API key', SESSION: 'Person', CONNECTOR: 'Agent' } as const

/** Returns the blocked object, like `column email`, or else the error code. */
export const blockedWords = ({ blocked, code }: Pick<AuditItem, 'blocked' | 'code'>) =>
  blocked === undefined ? (code ?? '') : `${blocked.kind} ${blocked.name}`

/** Returns true if a wider exposure may allow the call, because a table or a column was blocked. */
export const isFixable = ({ outcome, action, blocked, datasourceId }: AuditItem) =>
  outcome === 'DENIED' &&
  action === 'runQuery' &&
  datasourceId !== undefined &&
  (blocked?.kind === 'table' || blocked?.kind === 'column')

/** Returns one line about the call or the change. */
export function subjectWords(item: AuditItem): string {
  if (item.query !== undefined) return item.query.replace(/\s+/g, ' ')
  // One row stands for `times` calls of a kind that may be very frequent, such as checks while somebody types.
  const often = item.times === undefined ? '' : `, ${item.times} times`
  const action = `${actionWords(item.action)}${often}`
  return item.target === undefined ? action : `${action}: ${item.target.name}`
}
