// Reads a team's audit without the rows of datasources that the caller cannot reach.
import { setImmediate } from 'node:timers/promises'
import type { Audit } from '../audit.ts'
import { CONTENT_TYPE, headOf, piecesOf, type ExportFormat } from './export.ts'
import type { AuditItem, AuditPage } from './page.ts'
import { actionsOf, coversAll, type ActionKind } from './action-kinds.ts'
import type { AuditFilter, AuditScope } from './row-filter.ts'
import type { Call } from '../../auth/caller.ts'
import { invalidRequest, notFound } from '../../errors.ts'
import { asId, type AccountId, type ApiKeyId, type AuditId, type DatasourceId, type TeamId } from '../../ids.ts'
import type { Role } from '../../contract/schemas.ts'
import { openConcurrencyLimit, type ConcurrencyLimit } from '../../concurrency-limit.ts'

export interface Reader {
  readonly teamId: TeamId
  readonly accountId: AccountId
  readonly role: Role
  readonly status: 'INVITED' | 'ACTIVE'
}

export interface AuditTrailDeps {
  readonly audit: Audit
  reachableIds(call: Call, reader: Reader): Promise<readonly DatasourceId[]>
}

/** An export may read a million rows. A client that stops reading its export keeps its slot for a minute. */
const EXPORTS = { each: 2, all: 8, retryAfterSeconds: 10, why: 'Other audit exports are running.' }

export function openExports(networkOf: (address: string) => string): ConcurrencyLimit {
  return openConcurrencyLimit(EXPORTS, networkOf)
}

export interface ExportDeps extends AuditTrailDeps {
  readonly exports: ConcurrencyLimit
}

export interface AuditFilterInput {
  readonly id?: readonly string[]
  readonly datasourceId?: string
  readonly accountId?: string
  readonly keyId?: readonly string[]
  readonly action?: readonly string[]
  readonly kind?: readonly ActionKind[]
  readonly outcome?: readonly AuditItem['outcome'][]
  readonly code?: readonly string[]
  readonly via?: readonly AuditItem['via'][]
  readonly client?: readonly string[]
  /** A kind (`column`), or a kind and a name (`column:email`). */
  readonly blocked?: readonly string[]
  readonly q?: string
  readonly from?: string
  readonly to?: string
}

type PageInput = AuditFilterInput & {
  readonly cursor?: string
  readonly limit?: number
  readonly after?: string
}

export interface AuditExport {
  readonly contentType: string
  readonly filename: string
  readonly parts: AsyncIterable<string>
}

const LIMIT = 50
/** An export pauses after this many characters, so that other requests run. */
const PART_CHARS = 128 * 1024
/** A text search reads every row of its period, so the period starts at most this long ago. */
const SEARCHED_MS = 30 * 86_400_000

/** Returns rows, newest first. An OWNER gets all rows, including those of deleted datasources. */
export async function listAudit(
  deps: AuditTrailDeps,
  call: Call,
  reader: Reader,
  input: PageInput,
): Promise<AuditPage> {
  const scope = await scopeOf(deps, call, reader, input)
  const after = input.after === undefined ? null : await deps.audit.place(reader.teamId, asId<AuditId>(input.after))
  const ask = {
    ...scope,
    ...(after !== null && { after }),
    cursor: input.cursor,
    limit: input.limit ?? (input.id === undefined ? LIMIT : input.id.length),
  }
  return await deps.audit.page(reader.teamId, ask, call.signal)
}

/** Throws NOT_FOUND if listAudit() would not show the row. */
export async function getAuditItem(deps: AuditTrailDeps, call: Call, reader: Reader, id: AuditId): Promise<AuditItem> {
  const item = await deps.audit.one(reader.teamId, id, await scopeOf(deps, call, reader, {}))
  if (item === null) throw notFound()
  return item
}

/** The audit records the export. If too many are running, reading `parts` throws RATE_LIMITED before the first part. */
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
  // The slot is taken when the export is first read, so an export that nobody reads takes none.
  using _slot = slotFor(deps, call, teamId)
  let rowCount = 0
  let isWhole = false
  try {
    // The header line is sent with the first rows, so that the export can still be refused if the first read fails.
    let lines = headOf(format)
    for await (const items of deps.audit.all(teamId, scope, call.signal)) {
      // Reading the items already took time, so let other requests run.
      await setImmediate()
      for (const item of items) {
        for (const piece of piecesOf(format, item)) {
          lines += piece
          if (lines.length < PART_CHARS) continue
          yield lines
          lines = ''
          await setImmediate()
        }
      }
      rowCount += items.length
    }
    if (lines !== '') yield lines
    isWhole = true
  } finally {
    deps.audit.record(call, { teamId, outcome: isWhole ? 'ANSWERED' : 'FAILED', rowCount })
  }
}

/** Records the refusal if too many exports are running. */
function slotFor(deps: ExportDeps, call: Call, teamId: TeamId): Disposable {
  try {
    return deps.exports.take(teamId, call, teamId)
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

/** Throws INVALID_REQUEST for an invalid time, and if `to` is before `from`. */
export function filterOf(input: AuditFilterInput, now = Date.now()): AuditFilter {
  const { id, datasourceId, accountId, keyId, action, kind, outcome, code, via, client, blocked, q } = input
  const from = input.from === undefined ? undefined : utc('from', input.from)
  const to = input.to === undefined ? undefined : utc('to', input.to)
  if (from !== undefined && to !== undefined && from > to) throw invalidRequest(['to: must not be before from'])
  const searchedFrom = q === undefined ? '' : new Date(now - SEARCHED_MS).toISOString()
  const since = [from ?? '', searchedFrom].sort().at(-1) ?? ''
  return {
    ...(id !== undefined && { ids: id.map((each) => asId<AuditId>(each)) }),
    ...(datasourceId !== undefined && { datasourceId: asId<DatasourceId>(datasourceId) }),
    ...(accountId !== undefined && { accountId: asId<AccountId>(accountId) }),
    ...(keyId !== undefined && { keyIds: keyId.map((each) => asId<ApiKeyId>(each)) }),
    ...(action !== undefined && { actions: action }),
    ...(kind !== undefined && !coversAll(kind) && { kinds: actionsOf(kind) }),
    ...(outcome !== undefined && { outcomes: outcome }),
    ...(code !== undefined && { codes: code }),
    ...(via !== undefined && { vias: via }),
    ...(client !== undefined && { clients: client }),
    ...(blocked !== undefined && { blocked: blocked.map(blockedOf) }),
    ...(q !== undefined && { text: q.toLowerCase() }),
    ...(since !== '' && { from: since }),
    ...(to !== undefined && { to }),
  }
}

/** A name may contain a colon, but a kind may not. */
function blockedOf(text: string): { readonly kind: string; readonly name?: string } {
  const colon = text.indexOf(':')
  return colon === -1 ? { kind: text } : { kind: text.slice(0, colon), name: text.slice(colon + 1) }
}

/** ISO 8601 writes later years with a sign, which sorts before all digits. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

function utc(name: string, time: string): string {
  const ms = Date.parse(time)
  if (Number.isNaN(ms)) throw invalidRequest([`${name}: not a valid time`])
  return new Date(Math.min(ms, LAST_MS)).toISOString()
}
