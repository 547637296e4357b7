// Who did what, to which datasource, and how it ended: every call that reached a datasource and every change, refused
// ones too. Rows of calls are written in batches off the hot path; rows of changes inside the change's transaction.
// It never drops a row: when it cannot keep up, `behind` tells the query path to shed load instead.
import { createHash, randomUUID } from 'node:crypto'
import { CompiledQuery, type Insertable, type Selectable, type Transaction } from 'kysely'
import { z } from 'zod'
import { AppError, invalidRequest, STATUS } from './errors.ts'
import { asId, type AccountId, type ApiKeyId, type AuditId, type DatasourceId, type TeamId } from './ids.ts'
import type { Store } from './store/open.ts'
import type { AuditTable, Tables } from './store/tables.ts'

type Row = Insertable<AuditTable>

/** The part of a call that is kept; auth's Call fits. */
export interface AuditedCall {
  readonly action: string
  readonly caller: { readonly kind: 'key' | 'session'; readonly accountId: AccountId; readonly keyId?: ApiKeyId }
}

interface AuditPlace {
  readonly teamId?: TeamId
  readonly datasourceId?: DatasourceId
}

/** How a call ended. Where the team redacts literals, `query` and `printed` are left out by whoever records. */
interface AuditEntry extends AuditPlace {
  readonly outcome: AuditTable['outcome']
  readonly code?: string | null
  readonly blocked?: unknown
  readonly query?: string | null
  readonly printed?: string | null
  readonly rowCount?: number | null
  readonly bytes?: number | null
  readonly durationMs?: number | null
}

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

export interface Audit extends AsyncDisposable {
  /** True while more is waiting than may be kept in memory: new queries are shed until it is written. */
  readonly behind: boolean
  /** Of a change, in its own transaction: durable when the change is. */
  change(tx: Transaction<Tables>, call: AuditedCall, at: AuditPlace): Promise<void>
  /** Of a call that reached a datasource: batched, written within a second, never awaited on the hot path. */
  record(call: AuditedCall, entry: AuditEntry): void
  /**
   * Of a call or change that was refused or failed: outcome and code are read from the error. One error is kept once,
   * by whoever tells it first and knows most.
   */
  refused(call: AuditedCall, at: AuditPlace, error: unknown): void
  /** Writes all that was recorded before. */
  flush(): Promise<void>
  /** A team's rows, newest first, all that was recorded before among them. Throws INVALID_REQUEST for a cursor not ours. */
  page(
    teamId: TeamId,
    ask: AuditAsk,
  ): Promise<{ readonly items: readonly AuditItem[]; readonly nextCursor: string | null }>
  /** Removes what is older than its team keeps; runs by itself once a day. */
  prune(): Promise<void>
}

interface AuditAsk {
  /** Only rows of these datasources and of none; absent: all, also of deleted ones. */
  readonly datasourceIds?: readonly DatasourceId[]
  readonly cursor?: string | undefined
  readonly limit: number
}

interface Deps {
  readonly store: Pick<Store, 'db' | 'dialect' | 'append'>
  readonly log?: { error(detail: object, message: string): void }
  /** How long a team keeps its rows; absent: nothing is pruned. */
  readonly retentionDays?: (teamId: TeamId) => Promise<number>
  readonly now?: () => number
}

/** As a refusal names it (contract.md), read back from the store. */
const Blocked = z.object({
  kind: z.enum(['table', 'column', 'function', 'type', 'operator', 'statement', 'stage', 'cost', 'limit']),
  name: z.string(),
})

const FLUSH_MS = 200
const RETRY_MS = 1_000
const FIRST_PRUNE_MS = 60_000
const DAY_MS = 86_400_000
/** What may wait in memory; a store that writes at all never comes near it. */
const WAITING_ROWS_MAX = 20_000
const WAITING_CHARS_MAX = 64 * 1024 * 1024
const ROWS_PER_INSERT = 64
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

/** Opens the audit over the store; disposing writes what waits. */
export function openAudit(deps: Deps): Audit {
  return new BatchedAudit(deps)
}

class BatchedAudit implements Audit {
  readonly #deps: Deps
  readonly #now: () => number
  #waiting: Row[] = []
  #waitingChars = 0
  /** 429s, one row a key and minute, by their id. */
  #folded = new Map<AuditId, Row>()
  readonly #told = new WeakSet<object>()
  #timer: NodeJS.Timeout | undefined
  #pruning: NodeJS.Timeout | undefined
  #tail: Promise<void> = Promise.resolve()
  #lastMs = 0
  #sequence = 0
  readonly #inserts = new Map<number, string>()

  constructor(deps: Deps) {
    this.#deps = deps
    this.#now = deps.now ?? Date.now
    if (deps.retentionDays !== undefined) this.#pruneIn(FIRST_PRUNE_MS)
  }

  get behind(): boolean {
    return this.#waiting.length > WAITING_ROWS_MAX || this.#waitingChars > WAITING_CHARS_MAX
  }

  async change(tx: Transaction<Tables>, call: AuditedCall, at: AuditPlace): Promise<void> {
    await tx
      .insertInto('audit')
      .values(this.#row(call, { ...at, outcome: 'ANSWERED' }))
      .execute()
  }

  record(call: AuditedCall, entry: AuditEntry): void {
    if (entry.code === 'RATE_LIMITED') this.#fold(call, entry)
    else {
      const row = this.#row(call, entry)
      this.#waiting.push(row)
      this.#waitingChars += charsOf(row)
    }
    this.#arm(FLUSH_MS)
  }

  refused(call: AuditedCall, at: AuditPlace, error: unknown): void {
    if (typeof error === 'object' && error !== null) {
      if (this.#told.has(error)) return
      this.#told.add(error)
    }
    const code = error instanceof AppError ? error.code : 'INTERNAL'
    const blocked = error instanceof AppError ? error.extra['blocked'] : undefined
    this.record(call, { ...at, outcome: outcomeOf(code), code, ...(blocked !== undefined && { blocked }) })
  }

  flush(): Promise<void> {
    const written = this.#tail.then(() => this.#drain())
    this.#tail = written.catch(() => undefined)
    return written
  }

  async page(teamId: TeamId, ask: AuditAsk) {
    const after = ask.cursor === undefined ? null : readCursor(ask.cursor)
    await this.flush()
    let query = this.#deps.store.db.selectFrom('audit').selectAll().where('team_id', '=', teamId)
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

  async prune(): Promise<void> {
    const { store, retentionDays } = this.#deps
    if (retentionDays === undefined) return
    const teams = await store.db
      .selectFrom('audit')
      .select('team_id')
      .distinct()
      .where('team_id', 'is not', null)
      .execute()
    for (const { team_id: teamId } of teams) {
      if (teamId === null) continue
      const before = new Date(this.#now() - (await retentionDays(teamId)) * DAY_MS).toISOString()
      // A thousand at a time, so that nobody waits long for the store.
      for (;;) {
        const old = (tx: Transaction<Tables>) =>
          tx.selectFrom('audit').select('id').where('team_id', '=', teamId).where('at', '<', before).limit(1_000)
        const removed = await store.append((tx) => tx.deleteFrom('audit').where('id', 'in', old(tx)).executeTakeFirst())
        if (removed.numDeletedRows < 1_000n) break
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer)
    clearTimeout(this.#pruning)
    await this.flush()
    clearTimeout(this.#timer)
  }

  #row(call: AuditedCall, entry: AuditEntry): Row {
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

  /** Ids rise with time (UUID v7), so that rows of one millisecond keep their order. */
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

  /** The id says team, key and minute, so that several processes count into one row. */
  #fold(call: AuditedCall, entry: AuditEntry): void {
    const row = this.#row(call, entry)
    const minute = Math.floor(this.#now() / 60_000) * 60_000
    const who = [entry.teamId, row.via, row.account_id, row.key_id, minute].join('|')
    const hash = createHash('sha256').update(who).digest('hex')
    const tail = `a${hash.slice(0, 3)}-${hash.slice(3, 15)}`
    const id = timeOrdered(minute, hash.slice(15, 18), tail)
    const known = this.#folded.get(id)
    if (known === undefined) this.#folded.set(id, { ...row, id })
    else known.times++
  }

  /** Soon after the start, as no process need live for a day, and then once a day. */
  #pruneIn(ms: number): void {
    this.#pruning = setTimeout(() => {
      this.#pruneIn(DAY_MS)
      this.prune().catch((error: unknown) => this.#say(error, 'prune'))
    }, ms)
    this.#pruning.unref()
  }

  #arm(ms: number): void {
    if (this.#timer !== undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.flush().catch((error: unknown) => {
        this.#say(error, 'write')
        this.#arm(RETRY_MS)
      })
    }, ms)
    this.#timer.unref()
  }

  async #drain(): Promise<void> {
    if (this.#waiting.length === 0 && this.#folded.size === 0) return
    const rows = this.#waiting
    const folded = this.#folded
    const chars = this.#waitingChars
    this.#waiting = []
    this.#folded = new Map()
    try {
      await this.#deps.store.append((tx) => this.#write(tx, rows, folded))
      this.#waitingChars -= chars
    } catch (error) {
      this.#waiting = rows.concat(this.#waiting)
      for (const [id, row] of folded) row.times += this.#folded.get(id)?.times ?? 0
      this.#folded = new Map([...this.#folded, ...folded])
      throw error
    }
  }

  async #write(tx: Transaction<Tables>, rows: readonly Row[], folded: ReadonlyMap<AuditId, Row>): Promise<void> {
    for (let from = 0; from < rows.length; from += ROWS_PER_INSERT) {
      const part = rows.slice(from, from + ROWS_PER_INSERT)
      const values = part.flatMap((row) => COLUMNS.map((column) => row[column]))
      await tx.executeQuery(CompiledQuery.raw(this.#insert(part.length), values))
    }
    for (const row of folded.values()) {
      await tx
        .insertInto('audit')
        .values(row)
        .onConflict((oc) => oc.column('id').doUpdateSet({ times: (eb) => eb('audit.times', '+', row.times) }))
        .execute()
    }
  }

  /** The statement for so many rows, written once: building it anew for each batch costs more than the insert. */
  #insert(count: number): string {
    let text = this.#inserts.get(count)
    if (text === undefined) {
      let n = 0
      const mark = this.#deps.store.dialect === 'sqlite' ? () => '?' : () => `$${++n}`
      const rows = Array.from({ length: count }, () => `(${COLUMNS.map(mark).join(',')})`)
      text = `INSERT INTO audit (${COLUMNS.join(',')}) VALUES ${rows.join(',')}`
      this.#inserts.set(count, text)
    }
    return text
  }

  #say(error: unknown, what: string): void {
    this.#deps.log?.error({ err: error }, `audit: could not ${what}; it will be tried again`)
  }
}

/** A refusal is DENIED, what went wrong is FAILED. */
export function outcomeOf(code: string): 'DENIED' | 'FAILED' {
  const status = new Map<string, number>(Object.entries(STATUS)).get(code)
  return status === 403 || status === 404 || status === 429 ? 'DENIED' : 'FAILED'
}

function timeOrdered(ms: number, middle: string, tail: string): AuditId {
  const head = ms.toString(16).padStart(12, '0')
  return asId<AuditId>(`${head.slice(0, 8)}-${head.slice(8)}-7${middle}-${tail}`)
}

function charsOf(row: Row): number {
  return 500 + (row.query?.length ?? 0) + (row.printed?.length ?? 0)
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
