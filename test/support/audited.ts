import assert from 'node:assert/strict'
import type { Audit } from '../../src/audit/audit.ts'
import type { UsageLine } from '../../src/audit/usage-by-day.ts'
import { sealWith } from '../../src/audit/chain/seal.ts'
import { verifyAudit, type ChainReport } from '../../src/audit/chain/verify-chains.ts'
import { newest } from '../../src/audit/reading/newest-rows.ts'
import type { AuditFilter } from '../../src/audit/reading/row-filter.ts'
import type { TeamId } from '../../src/ids.ts'
import type { Store } from '../../src/store/open.ts'

export const AUDIT_KEY = new Uint8Array(32).fill(7)

/** The newest row comes first. */
export async function rowsOf(store: Pick<Store, 'db'>, teamId: TeamId, filter: AuditFilter = {}) {
  return (await gathered(newest(store, teamId, { filter }, null))).flat()
}

export async function reportsOf(
  store: Pick<Store, 'db'>,
  key: Uint8Array = AUDIT_KEY,
): Promise<readonly ChainReport[]> {
  return await store.db.transaction().execute((tx) => gathered(verifyAudit(tx, sealWith(key), () => undefined)))
}

export async function findingsOf(store: Pick<Store, 'db'>, key: Uint8Array = AUDIT_KEY) {
  return (await reportsOf(store, key)).flatMap(({ finding }) => finding ?? [])
}

/** Returns the only problem of the audit. Fails if there is none, or more than one. */
export async function findingOf(store: Pick<Store, 'db'>) {
  const [first, ...more] = await findingsOf(store)
  assert.ok(first !== undefined && more.length === 0, JSON.stringify([first, ...more]))
  return first
}

/** The newest day comes first. */
export async function usageOf(audit: Audit, teamId: TeamId, from = '2000-01-01'): Promise<readonly UsageLine[]> {
  return (await gathered(audit.usage(teamId, from, new AbortController().signal))).flat()
}

export async function gathered<T>(from: AsyncIterable<T>): Promise<readonly T[]> {
  const list: T[] = []
  for await (const each of from) list.push(each)
  return list
}
