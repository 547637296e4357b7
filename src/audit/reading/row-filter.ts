import { Blocked } from '../refusal-reason.ts'
import { readDetail } from '../row-detail.ts'
import type { AccountId, ApiKeyId, AuditId, DatasourceId } from '../../ids.ts'
import type { AuditTable } from '../../store/tables.ts'
import type { Content } from '../chain/seal.ts'
import type { Actions } from './action-kinds.ts'

/** A row must match all fields. It matches a list if it matches one element. */
export interface AuditFilter {
  readonly ids?: readonly AuditId[]
  readonly datasourceId?: DatasourceId
  readonly accountId?: AccountId
  readonly keyIds?: readonly ApiKeyId[]
  readonly actions?: readonly string[]
  readonly kinds?: Actions
  readonly outcomes?: readonly AuditTable['outcome'][]
  readonly codes?: readonly string[]
  readonly vias?: readonly AuditTable['via'][]
  readonly clients?: readonly string[]
  readonly blocked?: readonly { readonly kind: string; readonly name?: string }[]
  /** The searched text, in lower case. */
  readonly text?: string
  /** Inclusive. ISO 8601, UTC, with milliseconds. */
  readonly from?: string
  /** Exclusive. */
  readonly to?: string
}

export interface AuditScope {
  /** Also includes rows without a datasource. If missing, all rows. */
  readonly datasourceIds?: readonly DatasourceId[]
  readonly filter?: AuditFilter
  readonly after?: Key
}

export interface Key {
  readonly at: string
  readonly id: AuditId
}

/** Returns true if `a` comes before `b` in the order newest first. */
export function isNewer(a: Key, b: Key): boolean {
  return a.at === b.at ? a.id > b.id : a.at > b.at
}

export function fits(row: Content, scope: AuditScope, before: Key | null): boolean {
  const { datasourceIds: ids, filter = {}, after } = scope
  const { datasourceId, accountId, from, to } = filter
  return (
    (before === null || isNewer(before, row)) &&
    (after === undefined || isNewer(row, after)) &&
    (from === undefined || row.at >= from) &&
    (to === undefined || row.at < to) &&
    (ids === undefined || row.datasource_id === null || ids.includes(row.datasource_id)) &&
    (datasourceId === undefined || row.datasource_id === datasourceId) &&
    (accountId === undefined || row.account_id === accountId) &&
    isOneOf(filter.ids, row.id) &&
    isOneOf(filter.keyIds, row.key_id) &&
    isOneOf(filter.actions, row.action) &&
    (filter.kinds === undefined || filter.kinds.names.has(row.action) !== filter.kinds.others) &&
    isOneOf(filter.outcomes, row.outcome) &&
    isOneOf(filter.codes, row.code) &&
    isOneOf(filter.vias, row.via) &&
    isOneOf(filter.clients, row.client) &&
    fitsContent(row, scope)
  )
}

/** Checks `blocked` and `text`. The SQL conditions check them only in part. */
export function fitsContent(row: Content, { filter = {} }: AuditScope): boolean {
  return isBlocked(row, filter.blocked) && holdsText(row, filter.text)
}

function isOneOf<T>(wanted: readonly T[] | undefined, value: T | null): boolean {
  return wanted === undefined || (value !== null && wanted.includes(value))
}

function isBlocked({ blocked }: Content, wanted: AuditFilter['blocked']): boolean {
  if (wanted === undefined) return true
  if (blocked === null) return false
  const { kind, name } = Blocked.parse(JSON.parse(blocked))
  return wanted.some((each) => each.kind === kind && (each.name === undefined || each.name === name))
}

/** Ignores case. */
function holdsText(row: Content, wanted: string | undefined): boolean {
  if (wanted === undefined) return true
  const holds = (text: string | null | undefined) => text?.toLowerCase().includes(wanted) === true
  if (holds(row.query) || holds(row.printed)) return true
  // Searching the JSON is faster than parsing it, but finds only texts that JSON writes unchanged.
  if (row.detail === null || (!needsEscapes(wanted) && !holds(row.detail))) return false
  const { by, key, target, error, hint, req, tables = [] } = readDetail(row.detail)
  return [by, key, target?.name, error, hint, req, ...tables.map((table) => table.join('.'))].some(holds)
}

/** Returns true if the stored JSON may contain the text in another form. */
export function needsEscapes(text: string): boolean {
  // Tables are stored as [schema, table], but searched as `schema.table`.
  return JSON.stringify(text) !== `"${text}"` || text.includes('.')
}
