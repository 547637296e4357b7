// Pure: an audit item in words.
import type { AuditItem } from '../../api/types.ts'

/** `runQuery` → `Run query`. */
export function actionWords(action: string): string {
  const words = action.replace(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`)
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** Who called: the key or agent, else the person. */
export function callerWords({ actor, keyName, grantName }: AuditItem): string {
  return keyName ?? grantName ?? actor.name ?? (actor.accountId === null ? 'Somebody who left' : 'Somebody')
}

export const VIA_WORDS = { API_KEY: 'API key', SESSION: 'Person', CONNECTOR: 'Agent' } as const

/** What was blocked: `column email`. */
export const blockedWords = ({ blocked, code }: Pick<AuditItem, 'blocked' | 'code'>) =>
  blocked === undefined ? (code ?? '') : `${blocked.kind} ${blocked.name}`

/** An exposure may let it pass: a table or a column was blocked. */
export const isFixable = ({ outcome, action, blocked, datasourceId }: AuditItem) =>
  outcome === 'DENIED' &&
  action === 'runQuery' &&
  datasourceId !== undefined &&
  (blocked?.kind === 'table' || blocked?.kind === 'column')

/** One line about what was asked or changed. */
export function subjectWords(item: AuditItem): string {
  if (item.query !== undefined) return item.query.replace(/\s+/g, ' ')
  // Drafts are judged while somebody types, and only counted.
  const often = item.times === undefined ? '' : `, ${item.times} times`
  const action = `${actionWords(item.action)}${often}`
  return item.target === undefined ? action : `${action}: ${item.target.name}`
}
