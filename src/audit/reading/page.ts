// Reads a team's audit rows, newest first.
import { setImmediate } from 'node:timers/promises'
import type { z } from 'zod'
import { invalidRequest } from '../../errors.ts'
import { asId, type AuditId, type TeamId } from '../../ids.ts'
import type { Store } from '../../store/open.ts'
import type { AuditTable } from '../../store/tables.ts'
import type { Stored } from '../chain/seal.ts'
import { readDetail, type Detail } from '../row-detail.ts'
import { Blocked } from '../refusal-reason.ts'
import { charsOf, msOf } from '../make-rows.ts'
import { newest, rowOfTeam, searched } from './newest-rows.ts'
import { CHARS_AIM } from './portion-size.ts'
import { fits, type AuditScope, type Key } from './row-filter.ts'

/** An item in the answer of GET …/audit. */
export interface AuditItem {
  readonly id: string
  readonly at: string
  readonly actor: {
    readonly accountId: string | null
    readonly name?: string
    readonly keyId?: string
    readonly grantId?: string
    readonly client?: string
  }
  readonly keyName?: string
  readonly grantName?: string
  readonly requestId?: string
  readonly via: AuditTable['via']
  readonly action: string
  readonly outcome: AuditTable['outcome']
  readonly datasourceId?: string
  readonly target?: Detail['target']
  readonly changes?: Detail['changes']
  readonly code?: string
  readonly blocked?: z.infer<typeof Blocked>
  readonly error?: string
  readonly hint?: string
  readonly position?: number
  readonly estimate?: number
  readonly limit?: number
  readonly query?: string
  readonly params?: unknown
  readonly printed?: string
  readonly tables?: readonly { readonly schema: string; readonly table: string }[]
  /** True if literals were removed from the texts, or the texts were left out. */
  readonly redacted?: true
  readonly rowCount?: number
  readonly bytes?: number
  readonly durationMs?: number
  /** How many calls the row counts, if more than one. */
  readonly times?: number
}

export interface AuditAsk extends AuditScope {
  readonly cursor?: string | undefined
  readonly limit: number
}

export interface AuditPage {
  readonly items: readonly AuditItem[]
  readonly nextCursor: string | null
}

/** A page ends with the row that brings it to this many characters. A page is written without a pause. */
const PAGE_CHARS_MAX = CHARS_AIM
/** How many batches are searched for one page. This takes about a second. */
const PORTIONS_MAX = 200

/**
 * A page may have fewer rows than `limit` although `nextCursor` continues. Throws INVALID_REQUEST for an invalid
 * cursor.
 */
export async function readPage(
  store: Pick<Store, 'db'>,
  teamId: TeamId,
  ask: AuditAsk,
  signal?: AbortSignal,
): Promise<AuditPage> {
  const rows = (before: Key | null) => searched(store, teamId, ask, before, signal)
  return await pageOf(rows, ask)
}

/** `from` yields the rows after the position `before`, and positions in time (see searched()). */
export async function pageOf(
  from: (before: Key | null) => AsyncIterable<readonly (Stored | Key)[]>,
  ask: Pick<AuditAsk, 'cursor' | 'limit'>,
): Promise<AuditPage> {
  const before = ask.cursor === undefined ? null : readCursor(ask.cursor)
  const rows: Stored[] = []
  let [chars, portions] = [0, 0]
  let reached: Key | undefined
  for await (const keys of from(before)) {
    for (const key of keys) {
      if (!('chain' in key)) portions++
      else if (chars <= PAGE_CHARS_MAX) {
        rows.push(key)
        chars += charsOf(key)
      }
    }
    reached = keys.at(-1) ?? reached
    if (rows.length > ask.limit || chars > PAGE_CHARS_MAX || portions > PORTIONS_MAX) break
  }
  if (portions > PORTIONS_MAX && rows.length <= ask.limit && chars <= PAGE_CHARS_MAX && reached !== undefined) {
    return { items: rows.map(itemOf), nextCursor: writeCursor(reached) }
  }
  // A page that ends early because of its length has a cursor, although no rows may follow.
  const isCut = rows.length > ask.limit || chars > PAGE_CHARS_MAX
  const shown = rows.slice(0, ask.limit)
  const last = shown.at(-1)
  return { items: shown.map(itemOf), nextCursor: isCut && last !== undefined ? writeCursor(last) : null }
}

export async function readOne(
  store: Pick<Store, 'db'>,
  teamId: TeamId,
  id: AuditId,
  scope: AuditScope,
): Promise<AuditItem | null> {
  const row = await rowOfTeam(store, teamId, id)
  return row !== null && fits(row, scope, null) ? itemOf(row) : null
}

/** The row may be removed already, because its id contains the time. Throws INVALID_REQUEST if the id is no UUID v7. */
export async function placeOf(store: Pick<Store, 'db'>, teamId: TeamId, id: AuditId): Promise<Key> {
  const row = await rowOfTeam(store, teamId, id)
  if (row !== null) return { at: row.at, id }
  const ms = msOf(id)
  if (ms === null) throw invalidRequest(['after: not the id of an audit item'])
  return { at: new Date(ms).toISOString(), id }
}

/** Returns all rows in batches, without rows that are written in the meantime. */
export async function* readAll(
  store: Pick<Store, 'db'>,
  teamId: TeamId,
  scope: AuditScope,
  signal?: AbortSignal,
): AsyncIterable<readonly AuditItem[]> {
  for await (const rows of newest(store, teamId, scope, null, signal)) {
    // Reading the rows already took time, so let other requests run.
    await setImmediate()
    yield rows.map(itemOf)
  }
}

function itemOf(row: Stored): AuditItem {
  const { by, key, grant, target, changes, error, hint, position, estimate, limit, tables, params, req } = readDetail(
    row.detail,
  )
  return {
    id: row.id,
    at: row.at,
    actor: {
      accountId: row.account_id,
      ...(by !== undefined && { name: by }),
      ...(row.key_id !== null && (grant === undefined ? { keyId: row.key_id } : { grantId: row.key_id })),
      ...(row.client !== null && { client: row.client }),
    },
    ...(key !== undefined && { keyName: key }),
    ...(grant !== undefined && { grantName: grant }),
    ...(req !== undefined && { requestId: req }),
    via: row.via,
    action: row.action,
    outcome: row.outcome,
    ...(row.datasource_id !== null && { datasourceId: row.datasource_id }),
    ...(target !== undefined && { target }),
    ...(changes !== undefined && { changes }),
    ...(row.code !== null && { code: row.code }),
    ...(row.blocked !== null && { blocked: Blocked.parse(JSON.parse(row.blocked)) }),
    ...(error !== undefined && { error }),
    ...(hint !== undefined && { hint }),
    ...(position !== undefined && { position }),
    ...(estimate !== undefined && { estimate }),
    ...(limit !== undefined && { limit }),
    ...(row.query !== null && { query: row.query }),
    ...(params !== undefined && { params }),
    ...(row.printed !== null && { printed: row.printed }),
    ...(tables !== undefined && { tables: tables.map(([schema, table]) => ({ schema, table })) }),
    ...(row.redacted === 1 && { redacted: true }),
    ...(row.row_count !== null && { rowCount: row.row_count }),
    ...(row.bytes !== null && { bytes: row.bytes }),
    ...(row.duration_ms !== null && { durationMs: row.duration_ms }),
    ...(row.times > 1 && { times: row.times }),
  }
}

function writeCursor({ at, id }: Key): string {
  return Buffer.from(`${at}|${id}`).toString('base64url')
}

function readCursor(cursor: string): Key {
  const [at, id, ...more] = Buffer.from(cursor, 'base64url').toString('latin1').split('|')
  if (
    at === undefined ||
    id === undefined ||
    more.length > 0 ||
    !/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(at) ||
    !/^([\w-]{1,64}|~)$/.test(id)
  ) {
    throw invalidRequest(['cursor: not a cursor of this service'])
  }
  return { at, id: asId<AuditId>(id) }
}
