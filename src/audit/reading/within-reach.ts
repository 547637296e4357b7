// Reads the audit within a caller's reach: their team's rows, without those of datasources they do not reach.
import type { Audit } from '../audit.ts'
import { CONTENT_TYPE, headOf, lineOf, type ExportFormat } from './export.ts'
import type { AuditItem, AuditPage } from './page.ts'
import type { AuditFilter, AuditScope } from './scope.ts'
import type { Call } from '../../auth/caller.ts'
import { invalidRequest, notFound } from '../../errors.ts'
import { asId, type AccountId, type ApiKeyId, type AuditId, type DatasourceId, type TeamId } from '../../ids.ts'
import type { Role } from '../../contract/schemas.ts'
import { openConcurrencyLimit, type ConcurrencyLimit } from '../../jobs/concurrency-limit.ts'

/** A member of the team. */
interface Reader {
  readonly teamId: TeamId
  readonly accountId: AccountId
  readonly role: Role
  readonly status: 'INVITED' | 'ACTIVE'
}

export interface AuditTrailDeps {
  readonly audit: Audit
  /** Returns the team's datasources that the caller reaches. */
  reachableIds(call: Call, reader: Reader): Promise<readonly DatasourceId[]>
}

/** An export may have a million rows. It reads while it sends, and keeps the store busy. */
const EXPORTS = { each: 2, all: 6, retryAfterSeconds: 10, why: 'Other audit exports are running.' }

export function openExports(): ConcurrencyLimit {
  return openConcurrencyLimit(EXPORTS)
}

export interface ExportDeps extends AuditTrailDeps {
  readonly exports: ConcurrencyLimit
}

/** The filter from the request: ids unbranded, times in any zone. */
export interface AuditFilterInput {
  readonly datasourceId?: string
  readonly accountId?: string
  readonly keyId?: string
  readonly action?: string
  readonly outcome?: AuditItem['outcome']
  readonly code?: string
  readonly from?: string
  readonly to?: string
}

/** A file that is sent while it is read. */
export interface AuditExport {
  readonly contentType: string
  readonly filename: string
  readonly parts: AsyncIterable<string>
}

const LIMIT = 50

/** Returns rows, newest first. An OWNER reaches all rows, including those of deleted datasources. */
export async function listAudit(
  deps: AuditTrailDeps,
  call: Call,
  reader: Reader,
  input: AuditFilterInput & { readonly cursor?: string; readonly limit?: number },
): Promise<AuditPage> {
  const scope = await scopeOf(deps, call, reader, input)
  const ask = { ...scope, cursor: input.cursor, limit: input.limit ?? LIMIT }
  return await deps.audit.page(reader.teamId, ask, call.signal)
}

/** Returns one row. Throws NOT_FOUND for a row that listAudit() would not show. */
export async function getAuditItem(deps: AuditTrailDeps, call: Call, reader: Reader, id: AuditId): Promise<AuditItem> {
  const item = await deps.audit.one(reader.teamId, id, await scopeOf(deps, call, reader, {}))
  if (item === null) throw notFound()
  return item
}

/**
 * Returns all rows as a file. The export itself is recorded in the audit, with its row count. Reading throws
 * RATE_LIMITED before the first part if too many exports are running.
 */
export async function exportAudit(
  deps: ExportDeps,
  call: Call,
  reader: Reader,
  input: AuditFilterInput & { readonly format?: ExportFormat },
): Promise<AuditExport> {
  const format = input.format ?? 'csv'
  const scope = await scopeOf(deps, call, reader, input)
  const day = new Date().toISOString().slice(0, 10)
  return {
    contentType: CONTENT_TYPE[format],
    filename: `audit-${reader.teamId}-${day}.${format}`,
    parts: linesOf(deps, call, reader, scope, format),
  }
}

async function* linesOf(
  deps: ExportDeps,
  call: Call,
  { teamId }: Reader,
  scope: AuditScope,
  format: ExportFormat,
): AsyncIterable<string> {
  // Taken when reading starts: an export that is never read must not hold a slot.
  using _slot = slotFor(deps, call, teamId)
  let rowCount = 0
  let isWhole = false
  try {
    // The header goes out with the first rows, so that a failing read is refused before anything is sent.
    let head = headOf(format)
    for await (const items of deps.audit.all(teamId, scope, call.signal)) {
      yield head + items.map((item) => lineOf(format, item)).join('')
      head = ''
      rowCount += items.length
    }
    if (head !== '') yield head
    isWhole = true
  } finally {
    deps.audit.record(call, { teamId, outcome: isWhole ? 'ANSWERED' : 'FAILED', rowCount })
  }
}

/** Throws RATE_LIMITED and records it: every export has a row. */
function slotFor(deps: ExportDeps, call: Call, teamId: TeamId): Disposable {
  try {
    return deps.exports.take(teamId)
  } catch (error) {
    deps.audit.refused(call, { teamId }, error)
    throw error
  }
}

async function scopeOf(deps: AuditTrailDeps, call: Call, reader: Reader, input: AuditFilterInput): Promise<AuditScope> {
  const filter = filterOf(input)
  if (reader.role === 'OWNER') return { filter }
  return { datasourceIds: await deps.reachableIds(call, reader), filter }
}

/** Throws INVALID_REQUEST if `to` is before `from`. */
function filterOf(input: AuditFilterInput): AuditFilter {
  const { datasourceId, accountId, keyId, action, outcome, code, from, to } = input
  const filter = {
    ...(datasourceId !== undefined && { datasourceId: asId<DatasourceId>(datasourceId) }),
    ...(accountId !== undefined && { accountId: asId<AccountId>(accountId) }),
    ...(keyId !== undefined && { keyId: asId<ApiKeyId>(keyId) }),
    ...(action !== undefined && { action }),
    ...(outcome !== undefined && { outcome }),
    ...(code !== undefined && { code }),
    ...(from !== undefined && { from: utc('from', from) }),
    ...(to !== undefined && { to: utc('to', to) }),
  }
  if (filter.from !== undefined && filter.to !== undefined && filter.from > filter.to) {
    throw invalidRequest(['to: must not be before from'])
  }
  return filter
}

/** Later years are written with a sign, and would sort before all others. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** Returns the time in the format of rows. */
function utc(name: string, time: string): string {
  const ms = Date.parse(time)
  if (Number.isNaN(ms)) throw invalidRequest([`${name}: not a valid time`])
  return new Date(Math.min(ms, LAST_MS)).toISOString()
}
