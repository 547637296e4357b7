// Builds audit rows. Their ids increase (UUID v7), so rows of the same millisecond keep their order.
import { createHash, randomUUID } from 'node:crypto'
import {
  asId,
  type AccountId,
  type ApiKeyId,
  type AuditId,
  type DatasourceId,
  type GrantId,
  type TeamId,
} from '../ids.ts'
import type { AuditTable } from '../store/tables.ts'
import type { Content } from './chain/seal.ts'
import { writeDetail, type CallDetail, type Who } from './row-detail.ts'

export interface AuditedCall {
  readonly action: string
  /** REST or the agent connector. Missing if the service itself acts. */
  readonly via?: 'REST' | 'CONNECTOR'
  readonly caller: Who & {
    readonly kind: 'key' | 'session' | 'grant'
    readonly accountId: AccountId
    readonly keyId?: ApiKeyId
    readonly grantId?: GrantId
  }
  readonly client?: string | undefined
  /** Missing if the service itself acts. */
  readonly requestId?: string | undefined
}

export interface AuditPlace {
  readonly teamId?: TeamId
  readonly datasourceId?: DatasourceId
}

/** If the team redacts literals, the texts here must already be redacted. */
export interface AuditEntry extends AuditPlace, CallDetail {
  readonly outcome: AuditTable['outcome']
  readonly code?: string | null
  readonly blocked?: unknown
  readonly query?: string | null
  readonly printed?: string | null
  /** True if literals were removed from the texts, or the texts were left out. */
  readonly redacted?: boolean
  readonly rowCount?: number | null
  readonly bytes?: number | null
  readonly durationMs?: number | null
}

export class RowMaker {
  readonly #now: () => number
  /** The end of all ids of this process. Within a millisecond, a sequence number orders the ids (RFC 9562, 6.2). */
  readonly #tail = randomUUID().slice(18)
  /** The ends of ids, by sequence number. They are cached, because building one costs as much as the rest of a row. */
  readonly #ends: string[] = []
  #lastMs = 0
  #head = ''
  #sequence = 0
  /** The time of the last row as text. Many rows have the same millisecond. */
  #time = { ms: Number.NaN, iso: '' }

  constructor(now: () => number) {
    this.#now = now
  }

  of(call: AuditedCall, entry: AuditEntry): Content {
    const { caller } = call
    const at = this.#now()
    return {
      id: this.#id(at),
      at: this.#iso(at),
      team_id: entry.teamId ?? null,
      datasource_id: entry.datasourceId ?? null,
      account_id: caller.accountId,
      key_id: caller.keyId ?? caller.grantId ?? null,
      via: viaOf(call),
      action: call.action,
      outcome: entry.outcome,
      code: entry.code ?? null,
      blocked: entry.blocked === undefined || entry.blocked === null ? null : JSON.stringify(entry.blocked),
      query: entry.query ?? null,
      printed: entry.printed ?? null,
      row_count: entry.rowCount ?? null,
      bytes: entry.bytes ?? null,
      duration_ms: entry.durationMs ?? null,
      times: 1,
      client: call.client ?? null,
      redacted: entry.redacted === true ? 1 : 0,
      detail: writeDetail(caller, entry, call.requestId),
    }
  }

  /**
   * Builds a row that counts similar events of a minute (see Audit.folded()). All processes must count in the same row,
   * so its id is a hash of the minute and of what makes events similar. The code is part of the hash: anybody who knows
   * an e-mail address can cause refusals for that account, and these must not hide other events.
   */
  ofMinute(call: AuditedCall, entry: AuditEntry): Content {
    const minute = Math.floor(this.#now() / MINUTE_MS) * MINUTE_MS
    const row = this.of(call, entry)
    const datasourceId = row.outcome === 'ANSWERED' ? row.datasource_id : null
    const who = [row.team_id, row.via, row.account_id, row.key_id, minute, row.action, row.code, datasourceId].join('|')
    const hash = createHash('sha256').update(who).digest('hex')
    const tail = `-a${hash.slice(0, 3)}-${hash.slice(3, 15)}`
    return { ...row, id: asId<AuditId>(`${headOf(minute)}${hash.slice(15, 18)}${tail}`) }
  }

  renamed(row: Content): Content {
    return { ...row, id: this.#id(this.#now()) }
  }

  #iso(ms: number): string {
    if (this.#time.ms !== ms) this.#time = { ms, iso: new Date(ms).toISOString() }
    return this.#time.iso
  }

  #id(at: number): AuditId {
    this.#sequence++
    if (at > this.#lastMs || this.#sequence > 0xfff) {
      this.#lastMs = Math.max(at, this.#lastMs + 1)
      this.#head = headOf(this.#lastMs)
      this.#sequence = 0
    }
    const end = (this.#ends[this.#sequence] ??= `${this.#sequence.toString(16).padStart(3, '0')}${this.#tail}`)
    return asId<AuditId>(this.#head + end)
  }
}

function viaOf({ via, caller }: AuditedCall): Content['via'] {
  if (via === 'CONNECTOR') return 'CONNECTOR'
  switch (caller.kind) {
    case 'key':
      return 'API_KEY'
    case 'session':
      return 'SESSION'
    case 'grant':
      return 'CONNECTOR'
    default:
      return caller.kind satisfies never
  }
}

export const MINUTE_MS = 60_000

export function charsOf(row: Content): number {
  return 500 + (row.query?.length ?? 0) + (row.printed?.length ?? 0) + (row.detail?.length ?? 0)
}

/** Returns how an id of this millisecond begins (UUID v7, RFC 9562, 5.7). */
export function headOf(ms: number): string {
  const hex = ms.toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7`
}

/** Returns null if the id is not a UUID v7. */
export function msOf(id: AuditId): number | null {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-7/.test(id) ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : null
}
