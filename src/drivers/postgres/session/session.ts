// Runs the transactions of one logged-in session. Each transaction is READ ONLY. The settings that make answers safe
// and exact are sent with each query in one write to the socket, unless the session still has them.
import { randomBytes } from 'node:crypto'
import { LostConnection, NO_ROWS, type Outcome, type Sink, type Wire } from './wire.ts'
import {
  bindMessage,
  closeStatement,
  type DatabaseError,
  DESCRIBE,
  describeStatement,
  EXECUTE,
  parseMessage,
  question,
  statement,
  SYNC,
} from './protocol-messages.ts'
import { explainSql } from './estimate.ts'
import { Held, heldKey, heldSql } from './lock-columns.ts'
import { PreparedStatements } from './prepared-statements.ts'
import { Request } from './compose-request.ts'
import type { PostgresQuery, ReadTable, SwitchedOff } from '../confined-query.ts'
import { identifier, literal } from '../quote.ts'

/**
 * The fixed settings, as the server shows them. They are set at the start of a session. Behind a pooler, each
 * transaction sets them (docs/drivers/postgres.md#sessions).
 */
const PINS: Readonly<Record<string, string>> = {
  default_transaction_read_only: 'on',
  search_path: 'pg_catalog',
  statement_timeout: '1min',
  lock_timeout: '10s',
  idle_in_transaction_session_timeout: '1min',
  idle_session_timeout: '0',
  standard_conforming_strings: 'on',
  client_encoding: 'UTF8',
  default_transaction_isolation: 'read committed',
  client_min_messages: 'error',
  // The server's default. With MDY, 02/03/2024 is 3 February.
  DateStyle: 'ISO, MDY',
  IntervalStyle: 'postgres',
  TimeZone: 'UTC',
  extra_float_digits: '1',
  bytea_output: 'hex',
  transform_null_equals: 'off',
  row_security: 'on',
  xmloption: 'content',
  // A role may have switched a plan node off, which adds 1e10 to a plan's cost before version 18.
  enable_seqscan: 'on',
  enable_indexscan: 'on',
  enable_indexonlyscan: 'on',
  enable_bitmapscan: 'on',
  enable_tidscan: 'on',
  enable_sort: 'on',
  enable_incremental_sort: 'on',
  enable_hashagg: 'on',
  enable_material: 'on',
  enable_memoize: 'on',
  enable_nestloop: 'on',
  enable_mergejoin: 'on',
  enable_hashjoin: 'on',
  enable_gathermerge: 'on',
  // With partitionwise plans, PostgreSQL would plan and keep more for each partition than the guard counts.
  enable_partitionwise_join: 'off',
  enable_partitionwise_aggregate: 'off',
  // When PostgreSQL compares conditions with those of partitions, it also checks for a cancel.
  constraint_exclusion: 'partition',
  plan_cache_mode: 'auto',
  // No cancel or timeout ends LLVM's compilation of a query: 1,000 conditions took 14 s.
  jit: 'off',
}

// These settings belong to the session, not to a transaction.
const SESSION_ONLY = new Set(['default_transaction_read_only', 'default_transaction_isolation', 'idle_session_timeout'])

/** Returns the start-up option with all fixed settings. */
export function startUpOptions(): string {
  return Object.entries(PINS)
    .map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
    .join(' ')
}

/** Returns the query of the server's version and fixed settings. It resolves no name along the search_path. */
export function readBackSql(): string {
  const names = ['server_version_num', 'server_version', ...Object.keys(PINS)]
  return `SELECT pg_catalog.pg_backend_pid(), ${names.map((name) => `pg_catalog.current_setting('${name}')`).join(', ')}`
}

/** Reads the answer to readBackSql(). `processId` is the server process that the login named, or null. */
export function readBack(row: readonly (string | null)[], processId: number | null): Server {
  const [process, version, versionText, ...settings] = row
  const held = Object.values(PINS).every((value, i) => settings[i] === value)
  const isDirect = processId !== null && Number(process) === processId
  return { version: Number(version), versionText: versionText ?? '', pinsEach: !held, isDirect }
}

export interface Server {
  /** server_version_num. */
  readonly version: number
  readonly versionText: string
  /** True if each transaction must set the fixed settings, because a pooler or login trigger changed them. */
  readonly pinsEach: boolean
  /**
   * False behind a pooler: queries run in another process than the login named. Other clients may use that process
   * next, so nothing may outlive a transaction.
   */
  readonly isDirect: boolean
}

/** The settings that differ between transactions. */
export interface Pinned {
  /** The schemas after pg_catalog on the search_path. */
  readonly searchPath: readonly string[]
  readonly timeoutMs: number
  /** True if the server must plan a prepared statement for each set of values. */
  readonly plansEach?: boolean
  /** The settings that are off in this transaction. */
  readonly switchedOff?: SwitchedOff
  /** True if the session keeps the settings after the transaction. */
  readonly keeps?: boolean
}

const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY'
const COMMIT = 'COMMIT'
/** Makes isolation level and READ ONLY of BEGIN the defaults of the session. */
const TRANSACTIONS =
  'SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY, NOT DEFERRABLE'
const ROLLBACK = Buffer.concat([statement('ROLLBACK'), SYNC])
const PREPARED_MAX = 64
/** The maximum number of prepared table descriptions of a session. More are parsed for each query. */
const TABLES_MAX = 256
// Errors after a schema change: a name is gone, or the columns of a prepared statement have changed (0A000).
const GONE: ReadonlySet<string> = new Set(['42P01', '42703', '3F000', '0A000'])
const CANCELLED = '57014'
// Errors for a prepared statement that does not exist, or exists already. Then a pooler that the login did not reveal
// has switched the server connection.
const FORGOTTEN: ReadonlySet<string> = new Set(['26000', '42P05'])

/** The class of errors for values that a type does not accept. For the value of a parameter, they have no position. */
const UNREADABLE = '22'

/** The frames before and after a query, and the statements that these frames prepare. */
interface Around {
  readonly before: Buffer
  readonly after: Buffer
  readonly prepared: readonly Prepared[]
  /** True if statements may have names. */
  readonly isNamed: boolean
  /** The number of statements in `before`. */
  readonly statements: number
  /** True if the session keeps the settings after the frames ran without an error. */
  readonly keeps: boolean
}

/** For a session that keeps its settings, including READ ONLY. The server runs all up to Sync in one transaction. */
const NOTHING_AROUND: Around = {
  before: Buffer.alloc(0),
  after: SYNC,
  prepared: [],
  isNamed: true,
  statements: 0,
  keeps: true,
}

/** The outcome of a transaction, and whether its answer may be returned. */
export interface Completed extends Outcome {
  /** True if a table has changed since the query was confined. The answer must not be returned. */
  readonly isStale: boolean
}

/** A statement that a request prepares. `names` stores the statement's name under `key`. */
interface Prepared {
  readonly names: Map<string, string>
  readonly key: string
}

/** The frames that describe the tables of a query. */
interface Described {
  readonly frames: Buffer
  readonly prepared: readonly Prepared[]
  /** The number of tables whose description has no statement name. */
  readonly unnamed: number
}

/** Statements that run before a query, and fail its transaction if something has changed. */
interface Checking {
  readonly frames: Buffer
  readonly count: number
}

type Asked = Pick<PostgresQuery, 'text' | 'params' | 'prepared' | 'reads'>

/** A session. It prepares known queries, and the statements around each query, under names. */
export class Session {
  readonly wire: Wire
  readonly server: Server
  /** A part of each statement name, because behind a pooler the server may also have statements of other sessions. */
  readonly #tag = `${randomBytes(9).toString('base64url')}_`
  readonly #statements = new PreparedStatements(this.#tag)
  readonly #request = new Request()
  /** The name under which explain() prepares its query. */
  readonly #planned = `p${this.#tag}`
  /**
   * True if a pooler may run each transaction on another server connection. Each transaction then sets all fixed
   * settings, and statements have no names.
   */
  #isPooled: boolean
  /** The last frames around a query. The next query usually needs the same. */
  #last: { readonly pinned: Pinned; readonly around: Around } | null = null
  /** The settings of the last request, if its query read one table and called no function. Otherwise null. */
  #lastPlain: Pinned | null = null
  /** The settings that the session still has. Null after a query that might have changed them. */
  #kept: Pinned | null = null
  /** False behind a pooler, which may run the next query in another process with other settings. */
  #mayKeep: boolean
  /** True if the session keeps the setting that plans each query for its values. */
  #plansEach = false
  /** Names of prepared statements, by their text. */
  readonly #names = new Map<string, string>()
  /** Names of prepared table descriptions, by heldKey(). */
  readonly #tables = new Map<string, string>()
  readonly #ready = new Map<string, Around>()
  readonly #described = new WeakMap<readonly ReadTable[], Buffer>()
  #named = 0

  constructor(wire: Wire, server: Server) {
    this.wire = wire
    this.server = server
    this.#isPooled = server.pinsEach || !server.isDirect
    this.#mayKeep = server.isDirect
  }

  /**
   * Runs the statements of `check` and one query, like transaction(). A query that can be prepared is prepared at its
   * first run in the session. If the server refuses that, the query is sent as text.
   */
  query(asked: Asked, check: Checking, pinned: Pinned, sink: Sink): Promise<Completed> {
    const { prepared } = asked
    const isPreparable = prepared !== undefined && !this.#isPooled && PreparedStatements.accepts(prepared.shared)
    if (!isPreparable) return this.#textual(asked, check, pinned, sink)
    return this.#prepared(asked, prepared, check, pinned, sink)
  }

  /** Sends a prepared query as text if that may avoid the error. */
  async #afterError(
    completed: Completed,
    error: DatabaseError,
    asked: Asked,
    prepared: NonNullable<Asked['prepared']>,
    ...[check, pinned, sink]: readonly [check: Checking, pinned: Pinned, sink: Sink]
  ): Promise<Completed> {
    if (completed.isStale || completed.answered || !this.wire.usable) return completed
    const { shared } = prepared
    const isRefused = this.#statements.find(shared) === undefined
    // The result columns changed, although the columns of the tables did not.
    const isOutdated = error.code === '0A000'
    if (isOutdated) this.#statements.drop(shared)
    const isUnread = error.code.startsWith(UNREADABLE) && holdsStrings(prepared)
    if (error.code === CANCELLED || !(isRefused || isOutdated || isUnread || this.#hasForgotten(completed)))
      return completed
    const again = await this.#textual(asked, check, pinned, sink)
    if (isRefused && !isOutdated && again.error === null) PreparedStatements.refuse(shared)
    return again
  }

  async #prepared(
    asked: Asked,
    prepared: NonNullable<Asked['prepared']>,
    check: Checking,
    pinned: Pinned,
    sink: Sink,
  ): Promise<Completed> {
    const { params, reads } = asked
    const { shared, values } = prepared
    const known = this.#statements.find(shared)
    const isPlain = known?.fields && shared.callsNothing && check.count === 0
    const needed = shared.hasOnePlan ? pinned : { ...pinned, plansEach: true }
    const around = isPlain ? this.#aroundPlain(needed) : this.#around(needed)
    const described = this.#describe(reads, around)
    const parsing = joined(around, described)
    const request = this.#request.begin().add(around.before).add(described.frames).add(check.frames)
    if (known?.fields) {
      sink.describe(known.fields)
      request.bind(known.name, params, values).add(EXECUTE).add(around.after)
      const completed = await this.#finished(request.bytes, parsing, sink, reads, around.statements + check.count)
      if (isPlain) this.#keep(needed, around, completed)
      return completed.error === null
        ? completed
        : this.#afterError(completed, completed.error, asked, prepared, check, pinned, sink)
    }
    const statement = known ?? this.#statements.next(shared)
    if (known === undefined) {
      request.add(this.#statements.closes()).add(parseMessage(statement.name, shared.text, shared.types))
    }
    request.bind(statement.name, params, values).add(DESCRIBE).add(EXECUTE).add(around.after)
    const completed = await this.#finished(request.bytes, parsing, sink, reads)
    const parsedBefore = (around.isNamed ? parsing.length : around.statements) + described.unnamed + check.count
    if (known === undefined && completed.parsed > parsedBefore) this.#statements.keep(shared, statement)
    statement.fields = completed.fields
    return completed.error === null
      ? completed
      : this.#afterError(completed, completed.error, asked, prepared, check, pinned, sink)
  }

  #textual({ text, params, reads }: Asked, check: Checking, pinned: Pinned, sink: Sink): Promise<Completed> {
    return this.#whole(pinned, sink, reads, (request) => request.add(check.frames).question(text, params))
  }

  /**
   * Runs a whole transaction in one write. If the server does not describe the tables in `reads` as expected, the
   * session is abandoned. Otherwise the session is idle afterwards, even if the query failed.
   */
  transaction(frames: Buffer, pinned: Pinned, sink: Sink, reads: readonly ReadTable[] = []): Promise<Completed> {
    return this.#whole(pinned, sink, reads, (request) => request.add(frames))
  }

  async #whole(
    pinned: Pinned,
    sink: Sink,
    reads: readonly ReadTable[],
    fill: (request: Request) => Request,
  ): Promise<Completed> {
    const run = (): Promise<Completed> => {
      const around = this.#around(pinned)
      const described = this.#describe(reads, around)
      const request = fill(this.#request.begin().add(around.before).add(described.frames)).add(around.after)
      return this.#finished(request.bytes, joined(around, described), sink, reads)
    }
    const completed = await run()
    return this.#hasForgotten(completed) ? run() : completed
  }

  /**
   * Opens a transaction and requests the plan of a query, between the statements `check` and `more`. A query without
   * parameters is prepared, so that runExplained() runs the plan that EXPLAIN showed. The transaction stays open: call
   * runExplained() or end() afterwards, unless the session is lost.
   */
  async explain(asked: Asked, check: Buffer, more: Buffer, pinned: Pinned, sink: Sink): Promise<Completed> {
    const run = (): Promise<Completed> => {
      const around = this.#around(pinned)
      const described = this.#describe(asked.reads, around)
      const explaining = Buffer.concat([check, this.#explaining(asked), more])
      const request = Buffer.concat([around.before, described.frames, explaining, SYNC])
      return this.#send(request, joined(around, described), sink, asked.reads)
    }
    const completed = await run()
    if (!this.#hasForgotten(completed)) return completed
    if (completed.status !== 'I') await this.wire.exchange(ROLLBACK, 1, NO_ROWS)
    return run()
  }

  /** Returns whether explain() prepares the query. Positions in errors then count from the start of its own text. */
  plansOnce({ params }: Asked): boolean {
    return !this.#isPooled && params.length === 0
  }

  #explaining(asked: Asked): Buffer {
    if (!this.plansOnce(asked)) return question(explainSql(asked.text), asked.params)
    const name = this.#planned
    // A statement of this name exists if the last transaction that used it failed.
    const parsing = [closeStatement(name), parseMessage(name, asked.text)]
    return Buffer.concat([...parsing, question(explainSql(`EXECUTE ${identifier(name)}`))])
  }

  /** Runs the query of explain(), and ends its transaction. */
  runExplained(asked: Asked, pinned: Pinned, sink: Sink): Promise<Completed> {
    const name = this.#planned
    const frames = this.plansOnce(asked)
      ? Buffer.concat([bindMessage(name), DESCRIBE, EXECUTE, closeStatement(name)])
      : question(asked.text, asked.params)
    return this.#ended(frames, pinned, sink)
  }

  /** If the server has lost the session's statements, stops naming statements, and returns whether to send again. */
  #hasForgotten({ error, answered }: Completed): boolean {
    if (this.#isPooled || error === null || answered || !FORGOTTEN.has(error.code) || !this.wire.usable) return false
    this.#isPooled = true
    this.#last = null
    this.#ready.clear()
    this.#names.clear()
    this.#tables.clear()
    this.#statements.forget()
    return true
  }

  /** Ends the transaction of explain() without running the query. */
  async end(pinned: Pinned): Promise<void> {
    await this.#ended(closeStatement(this.#planned), pinned, NO_ROWS)
  }

  #ended(frames: Buffer, pinned: Pinned, sink: Sink): Promise<Completed> {
    const { after } = this.#around(pinned)
    return this.#finished(Buffer.concat([frames, after]), [], sink, [])
  }

  /**
   * Sends the request with one Sync, so that the server sends its answer at once. If the query fails, the server skips
   * COMMIT, and a ROLLBACK needs a second round trip.
   */
  async #finished(
    request: Buffer,
    prepared: readonly Prepared[],
    sink: Sink,
    reads: readonly ReadTable[],
    undescribedAfter: number | null = null,
  ): Promise<Completed> {
    // Repeats the code of #send() to save a promise.
    this.#lastPlain = this.#kept = null
    const held = new Held(reads)
    const completed = this.#completedOf(
      await this.wire.exchange(request, 1, sink, held, undescribedAfter),
      held,
      prepared,
    )
    if (!this.wire.usable || completed.status === 'I') return completed
    const { status } = await this.wire.exchange(ROLLBACK, 1, NO_ROWS)
    if (status !== 'I') this.wire.fail(new LostConnection('a transaction that did not end'))
    return completed
  }

  async #send(
    request: Buffer,
    prepared: readonly Prepared[],
    sink: Sink,
    reads: readonly ReadTable[],
  ): Promise<Completed> {
    this.#lastPlain = this.#kept = null
    const held = new Held(reads)
    return this.#completedOf(await this.wire.exchange(request, 1, sink, held), held, prepared)
  }

  #completedOf(outcome: Outcome, held: Held, prepared: readonly Prepared[]): Completed {
    // Prepared statements come first in the request, so the first `parsed` of them exist even if a later one failed.
    if (prepared.length > 0) {
      prepared.slice(0, outcome.parsed).forEach(({ names, key }, i) => names.set(key, this.#nameOf(i)))
      this.#named += prepared.length
    }
    const { error } = outcome
    const isStale = outcome.unexpected || (!held.isWhole && (error === null || GONE.has(error.code)))
    // End the session: statements that were prepared before the table changed would fail in all later queries.
    if (isStale && error?.code === '0A000') this.wire.fail(new LostConnection('a table has changed'))
    return { ...outcome, isStale }
  }

  /** Returns the name of the next statement (`ahead` 0) or of a later one. */
  #nameOf(ahead: number): string {
    return `v${this.#tag}${this.#named + ahead}`
  }

  #describe(reads: readonly ReadTable[], around: Around): Described {
    const ready = around.isNamed ? this.#described.get(reads) : undefined
    if (ready !== undefined) return { frames: ready, prepared: [], unnamed: 0 }
    const prepared: Prepared[] = []
    let unnamed = 0
    const frames = reads.flatMap((table) => {
      const key = heldKey(table)
      const known = around.isNamed ? this.#tables.get(key) : undefined
      if (known !== undefined) return [describeStatement(known)]
      const hasRoom = around.isNamed && this.#tables.size + prepared.length < TABLES_MAX
      const name = hasRoom ? this.#nameOf(around.prepared.length + prepared.length) : ''
      if (hasRoom) prepared.push({ names: this.#tables, key })
      else unnamed++
      return [parseMessage(name, heldSql(table)), describeStatement(name)]
    })
    const all = Buffer.concat(frames)
    if (around.isNamed && prepared.length === 0 && unnamed === 0) this.#described.set(reads, all)
    return { frames: all, prepared, unnamed }
  }

  #keep(needed: Pinned, around: Around, { error, isStale, status, answered }: Completed): void {
    if (error === null && !isStale && status === 'I') {
      this.#lastPlain = needed
      if (!around.keeps) return
      this.#kept = needed
      this.#plansEach = needed.plansEach === true
      this.#last = null
    } else if (around.keeps && around !== NOTHING_AROUND && answered) this.#mayKeep = false
  }

  /**
   * Returns the frames around a query that calls no function and so changes no setting. The second of two such queries
   * with equal settings sets the settings for the session. Later queries need no frames
   * (docs/decisions/0051-settings-kept.md).
   */
  #aroundPlain(pinned: Pinned): Around {
    if (this.#kept !== null && isSame(this.#kept, pinned)) return NOTHING_AROUND
    const isAgain = this.#mayKeep && this.#lastPlain !== null && isSame(this.#lastPlain, pinned)
    return this.#around(isAgain ? { ...pinned, keeps: true } : pinned)
  }

  #around(pinned: Pinned): Around {
    const last = this.#last
    if (last !== null && isSame(last.pinned, pinned)) return last.around
    const around = this.#aroundOf(pinned)
    this.#last = around.prepared.length === 0 ? { pinned, around } : null
    return around
  }

  #aroundOf(pinned: Pinned): Around {
    const path = ['pg_catalog', ...pinned.searchPath].map(identifier).join(', ')
    const isPlannedOnce = this.#plansEach && pinned.plansEach !== true
    const { switchedOff = '' } = pinned
    const off = switchedOff.split(' ').filter((name) => name !== '')
    const key = `${switchedOff} ${pinned.timeoutMs} ${pinned.plansEach === true} ${pinned.keeps === true} ${isPlannedOnce} ${path}`
    const ready = this.#ready.get(key)
    if (ready !== undefined) return ready
    const own = off.map((name) => `${name} = off`)
    const settings = [`search_path = ${path}`, `statement_timeout = ${pinned.timeoutMs}`, ...own]
    const all = [...settings, `plan_cache_mode = ${pinned.plansEach === true ? 'force_custom_plan' : 'auto'}`]
    const before = pinned.plansEach === true || isPlannedOnce ? all : settings
    const after = pinned.keeps === true ? [COMMIT, TRANSACTIONS, ...all.map((each) => `SET ${each}`)] : [COMMIT]
    const around = this.#isPooled
      ? unnamed([BEGIN, pinAll(path, pinned.timeoutMs, off)])
      : this.#name([BEGIN, ...before.map((each) => `SET LOCAL ${each}`)], after)
    if (around.prepared.length === 0 && this.#ready.size < PREPARED_MAX) this.#ready.set(key, around)
    return around
  }

  #name(before: readonly string[], after: readonly string[]): Around {
    const fresh = [...before, ...after].filter((text) => !this.#names.has(text))
    if (this.#names.size + fresh.length > PREPARED_MAX) return unnamed(before)
    const run = (text: string): Buffer => {
      const name = this.#names.get(text) ?? this.#nameOf(fresh.indexOf(text))
      return Buffer.concat([bindMessage(name), EXECUTE])
    }
    const parses = fresh.map((text, i) => parseMessage(this.#nameOf(i), text))
    return {
      before: Buffer.concat([...parses, ...before.map(run)]),
      after: Buffer.concat([...after.map(run), SYNC]),
      prepared: fresh.map((key) => ({ names: this.#names, key })),
      isNamed: true,
      statements: before.length,
      keeps: after.length > 1,
    }
  }
}

function holdsStrings({ shared, values }: NonNullable<Asked['prepared']>): boolean {
  return shared.types.slice(shared.types.length - values.length).includes(0)
}

function isSame(one: Pinned, other: Pinned): boolean {
  const { searchPath, timeoutMs, plansEach, switchedOff, keeps } = other
  const isAlike = one.plansEach === plansEach && one.keeps === keeps && one.switchedOff === switchedOff
  return isAlike && one.searchPath === searchPath && one.timeoutMs === timeoutMs
}

function unnamed(before: readonly string[]): Around {
  return {
    before: Buffer.concat(before.map(statement)),
    after: Buffer.concat([statement(COMMIT), SYNC]),
    prepared: [],
    isNamed: false,
    statements: before.length,
    keeps: false,
  }
}

/** Sets all fixed settings of a transaction in one statement, for a session behind a pooler. */
function pinAll(path: string, timeoutMs: number, off: readonly string[]): string {
  const switchedOff = Object.fromEntries(off.map((name) => [name, 'off']))
  const settings = { ...PINS, search_path: path, statement_timeout: String(timeoutMs), ...switchedOff }
  const calls = Object.entries(settings)
    .filter(([name]) => !SESSION_ONLY.has(name))
    .map(([name, value]) => `pg_catalog.set_config('${name}', ${literal(value)}, true)`)
  return `SELECT ${calls.join(', ')}`
}

function joined(around: Around, described: Described): readonly Prepared[] {
  if (around.prepared.length === 0) return described.prepared
  return [...around.prepared, ...described.prepared]
}
