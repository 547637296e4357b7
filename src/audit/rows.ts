// A call as a row of the audit, and the statement that writes many. Ids rise with time (UUID v7), so that rows of one
// millisecond keep their order.
import { createHash, randomUUID } from 'node:crypto'
import type { Insertable } from 'kysely'
import { asId, type AccountId, type ApiKeyId, type AuditId, type DatasourceId, type TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { AuditTable } from '../store/tables.ts'

export type Row = Insertable<AuditTable>

/** The part of a call that is kept; auth's Call fits. */
export interface AuditedCall {
  readonly action: string
  readonly caller: { readonly kind: 'key' | 'session'; readonly accountId: AccountId; readonly keyId?: ApiKeyId }
}

export interface AuditPlace {
  readonly teamId?: TeamId
  readonly datasourceId?: DatasourceId
}

/** How a call ended. Where the team redacts literals, `query` and `printed` are left out by whoever records. */
export interface AuditEntry extends AuditPlace {
  readonly outcome: AuditTable['outcome']
  readonly code?: string | null
  readonly blocked?: unknown
  readonly query?: string | null
  readonly printed?: string | null
  readonly rowCount?: number | null
  readonly bytes?: number | null
  readonly durationMs?: number | null
}

const COLUMNS = [
  'id',
  'at',
  'team_id',
  'datasource_id',
  'account_id',
  'key_id',
  'via',
  'action',
  'outcome',
  'code',
  'blocked',
  'query',
  'printed',
  'row_count',
  'bytes',
  'duration_ms',
  'times',
] as const satisfies readonly (keyof AuditTable)[]

/** Makes rows; remembers the last id, to make the next one greater. */
export class RowMaker {
  readonly #now: () => number
  #lastMs = 0
  #sequence = 0

  constructor(now: () => number) {
    this.#now = now
  }

  of(call: AuditedCall, entry: AuditEntry): Row {
    const { caller } = call
    const at = this.#now()
    return {
      id: this.#id(at),
      at: new Date(at).toISOString(),
      team_id: entry.teamId ?? null,
      datasource_id: entry.datasourceId ?? null,
      account_id: caller.accountId,
      key_id: caller.keyId ?? null,
      via: caller.kind === 'key' ? 'API_KEY' : 'SESSION',
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
    }
  }

  /** A 429: the id says team, caller and minute, so that several processes count into one row. */
  ofMinute(call: AuditedCall, entry: AuditEntry): Row {
    const minute = Math.floor(this.#now() / 60_000) * 60_000
    const row = this.of(call, entry)
    const who = [entry.teamId, row.via, row.account_id, row.key_id, minute].join('|')
    const hash = createHash('sha256').update(who).digest('hex')
    const tail = `a${hash.slice(0, 3)}-${hash.slice(3, 15)}`
    return { ...row, id: timeOrdered(minute, hash.slice(15, 18), tail) }
  }

  #id(at: number): AuditId {
    if (at > this.#lastMs) {
      this.#lastMs = at
      this.#sequence = 0
    } else if (++this.#sequence > 0xfff) {
      this.#lastMs++
      this.#sequence = 0
    }
    return timeOrdered(this.#lastMs, this.#sequence.toString(16).padStart(3, '0'), randomUUID().slice(19))
  }
}

/** The statement for so many rows, written once: building it anew for each batch costs more than the insert. */
export function insertText(dialect: Store['dialect'], count: number): string {
  const key = `${dialect} ${count}`
  let text = inserts.get(key)
  if (text === undefined) {
    let n = 0
    const mark = dialect === 'sqlite' ? () => '?' : () => `$${++n}`
    const rows = Array.from({ length: count }, () => `(${COLUMNS.map(mark).join(',')})`)
    text = `INSERT INTO audit (${COLUMNS.join(',')}) VALUES ${rows.join(',')}`
    inserts.set(key, text)
  }
  return text
}

const inserts = new Map<string, string>()

export function valuesOf(rows: readonly Row[]): unknown[] {
  return rows.flatMap((row) => COLUMNS.map((column) => row[column]))
}

/** About what a row takes in memory. */
export function charsOf(row: Row): number {
  return 500 + (row.query?.length ?? 0) + (row.printed?.length ?? 0)
}

function timeOrdered(ms: number, middle: string, tail: string): AuditId {
  const head = ms.toString(16).padStart(12, '0')
  return asId<AuditId>(`${head.slice(0, 8)}-${head.slice(8)}-7${middle}-${tail}`)
}
