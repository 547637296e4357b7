// Pure: which rows of a team are asked for, and from where on.
import type { AccountId, ApiKeyId, AuditId, DatasourceId } from '../../ids.ts'
import type { AuditTable } from '../../store/tables.ts'
import type { Content } from '../chain/seal.ts'

/** Only rows that fit all of it. */
export interface AuditFilter {
  readonly datasourceId?: DatasourceId
  readonly accountId?: AccountId
  readonly keyId?: ApiKeyId
  readonly action?: string
  readonly outcome?: AuditTable['outcome']
  readonly code?: string
  /** ISO 8601, UTC, to the millisecond: from then on. */
  readonly from?: string
  /** Before then. */
  readonly to?: string
}

/** Which rows of a team. */
export interface AuditScope {
  /** Only rows of these datasources and of none; absent: all, also of deleted ones. */
  readonly datasourceIds?: readonly DatasourceId[]
  readonly filter?: AuditFilter
}

/** A place in the order of rows. */
export interface Key {
  readonly at: string
  readonly id: AuditId
}

/** Newest first. */
export function isNewer(a: Key, b: Key): boolean {
  return a.at === b.at ? a.id > b.id : a.at > b.at
}

/** Whether a row is among them. */
export function fits(row: Content, { datasourceIds: ids, filter = {} }: AuditScope, before: Key | null): boolean {
  const { datasourceId, accountId, keyId, action, outcome, code, from, to } = filter
  return (
    (before === null || isNewer(before, row)) &&
    (from === undefined || row.at >= from) &&
    (to === undefined || row.at < to) &&
    (ids === undefined || row.datasource_id === null || ids.includes(row.datasource_id)) &&
    (datasourceId === undefined || row.datasource_id === datasourceId) &&
    (accountId === undefined || row.account_id === accountId) &&
    (keyId === undefined || row.key_id === keyId) &&
    (action === undefined || row.action === action) &&
    (outcome === undefined || row.outcome === outcome) &&
    (code === undefined || row.code === code)
  )
}
