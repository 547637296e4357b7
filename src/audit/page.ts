// Reading the audit: a team's rows, newest first, page by page, as GET …/audit shows them.
import type { Selectable } from 'kysely'
import { z } from 'zod'
import { invalidRequest } from '../errors.ts'
import { asId, type AuditId, type DatasourceId, type TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { AuditTable } from '../store/tables.ts'

/** A row as GET …/audit shows it; what does not apply is left out. */
export interface AuditItem {
  readonly id: string
  readonly at: string
  readonly actor: { readonly accountId: string | null; readonly keyId?: string }
  readonly via: AuditTable['via']
  readonly action: string
  readonly outcome: AuditTable['outcome']
  readonly datasourceId?: string
  readonly code?: string
  readonly blocked?: z.infer<typeof Blocked>
  readonly query?: string
  readonly printed?: string
  readonly rowCount?: number
  readonly bytes?: number
  readonly durationMs?: number
  /** How many calls the row stands for, where more than one. */
  readonly times?: number
}

export interface AuditAsk {
  /** Only rows of these datasources and of none; absent: all, also of deleted ones. */
  readonly datasourceIds?: readonly DatasourceId[]
  readonly cursor?: string | undefined
  readonly limit: number
}

export interface AuditPage {
  readonly items: readonly AuditItem[]
  readonly nextCursor: string | null
}

/** As a refusal names it (contract.md), read back from the store. */
const Blocked = z.object({
  kind: z.enum(['table', 'column', 'function', 'type', 'operator', 'statement', 'stage', 'cost', 'limit']),
  name: z.string(),
})

/** Throws INVALID_REQUEST for a cursor not ours. */
export async function readPage(store: Pick<Store, 'db'>, teamId: TeamId, ask: AuditAsk): Promise<AuditPage> {
  const after = ask.cursor === undefined ? null : readCursor(ask.cursor)
  let query = store.db.selectFrom('audit').selectAll().where('team_id', '=', teamId)
  const ids = ask.datasourceIds
  if (ids !== undefined) {
    query = query.where((eb) =>
      ids.length === 0
        ? eb('datasource_id', 'is', null)
        : eb.or([eb('datasource_id', 'is', null), eb('datasource_id', 'in', ids)]),
    )
  }
  if (after !== null) {
    query = query.where((eb) =>
      eb.or([eb('at', '<', after.at), eb.and([eb('at', '=', after.at), eb('id', '<', asId<AuditId>(after.id))])]),
    )
  }
  const rows = await query
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(ask.limit + 1)
    .execute()
  const shown = rows.slice(0, ask.limit)
  const last = shown.at(-1)
  return {
    items: shown.map(itemOf),
    nextCursor: rows.length > ask.limit && last !== undefined ? writeCursor(last.at, last.id) : null,
  }
}

function itemOf(row: Selectable<AuditTable>): AuditItem {
  return {
    id: row.id,
    at: row.at,
    actor: { accountId: row.account_id, ...(row.key_id !== null && { keyId: row.key_id }) },
    via: row.via,
    action: row.action,
    outcome: row.outcome,
    ...(row.datasource_id !== null && { datasourceId: row.datasource_id }),
    ...(row.code !== null && { code: row.code }),
    ...(row.blocked !== null && { blocked: Blocked.parse(JSON.parse(row.blocked)) }),
    ...(row.query !== null && { query: row.query }),
    ...(row.printed !== null && { printed: row.printed }),
    ...(row.row_count !== null && { rowCount: row.row_count }),
    ...(row.bytes !== null && { bytes: row.bytes }),
    ...(row.duration_ms !== null && { durationMs: row.duration_ms }),
    ...(row.times > 1 && { times: row.times }),
  }
}

function writeCursor(at: string, id: string): string {
  return Buffer.from(`${at}|${id}`).toString('base64url')
}

function readCursor(cursor: string): { readonly at: string; readonly id: string } {
  const [at, id, ...more] = Buffer.from(cursor, 'base64url').toString('latin1').split('|')
  if (
    at === undefined ||
    id === undefined ||
    more.length > 0 ||
    !/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(at) ||
    !/^[\w-]{1,64}$/.test(id)
  ) {
    throw invalidRequest(['cursor: not one of ours'])
  }
  return { at, id }
}
