// Pure: selects the rows of a team by filter, reach and position.
import type { AccountId, ApiKeyId, AuditId, DatasourceId } from '../../ids.ts'
import type { AuditTable } from '../../store/tables.ts'
import type { Content } from '../chain/seal.ts'

/** A row must match every field. */
export interface AuditFilter {
  readonly datasourceId?: DatasourceId
  readonly accountId?: AccountId
  readonly keyId?: ApiKeyId
  readonly action?: string
  readonly outcome?: AuditTable['outcome']
  readonly code?: string
  /** Inclusive. ISO 8601, UTC, with milliseconds. */
  readonly from?: string
  /** Exclusive. */
  readonly to?: string
}

/** The rows of a team that a reader may see and asks for. */
export interface AuditScope {
  /** Only rows of these datasources, and rows without one. If absent, all rows, including deleted datasources. */
  readonly datasourceIds?: readonly DatasourceId[]
  readonly filter?: AuditFilter
}

/** A position in the order of rows. */
export interface Key {
  readonly at: string
  readonly id: AuditId
}

/** The order of rows: newest first. */
export function isNewer(a: Key, b: Key): boolean {
  return a.at === b.at ? a.id > b.id : a.at > b.at
}

/** Returns whether a row is within the scope and after `before`. */
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
