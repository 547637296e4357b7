// At intervals, checks whether a new request of a running query's caller would be refused, and whether the exposure
// shows less than before. If so, cancels the query, and the caller gets the error. At shutdown, cancels all running
// queries.
import type { Call, Caller } from '../auth/caller.ts'
import type { Deadline } from '../deadline.ts'
import { changedJustNow, narrowedJustNow, overloaded } from '../datasources/changed-or-overloaded.ts'
import { requireEnabled } from '../exposure/require-usable.ts'
import type { Reached } from '../datasources/require-reach.ts'
import { AppError, type Code } from '../errors.ts'

/** A shorter query is never checked. */
const CHECK_MS = 400

/** These errors of a check cancel the query. If the store fails or is busy (OVERLOADED), the query goes on. */
const ENDING: ReadonlySet<Code> = new Set<Code>([
  'UNAUTHENTICATED',
  'NOT_FOUND',
  'SCOPE_REQUIRED',
  'ROLE_REQUIRED',
  'SECOND_FACTOR_REQUIRED',
  'TEAM_NOT_OPENED',
  'DATASOURCE_DISABLED',
])

export interface RunningDeps {
  /** Throws UNAUTHENTICATED if the key, grant or session has ended, and SCOPE_REQUIRED if the grant may not query. */
  again(caller: Caller): Promise<Caller>
  /** Returns the datasource's current state. Throws the refusal that a new request would get. */
  reach(call: Call, at: Reached): Promise<Reached>
  /** True if an exposure that was saved after `version`, up to that of `at.row`, shows less than the one before it. */
  narrowed(at: Reached, version: number): Promise<boolean>
}

export interface RunningQueries extends AsyncDisposable {
  /** Registers a running query until the result is disposed. Throws OVERLOADED after endAll(). */
  add(call: Call, at: Reached, deadline: Deadline): Disposable
  /** Cancels all running queries with OVERLOADED (503), and refuses later queries. */
  endAll(): void
  readonly count: number
}

class Query {
  readonly call: Call
  readonly at: Reached
  readonly deadline: Deadline
  readonly since = performance.now()
  /** No exposure from the start of the query up to this version shows less than the one before it. */
  exposureVersion: number
  readonly #all: Set<Query>

  constructor(all: Set<Query>, call: Call, at: Reached, deadline: Deadline) {
    this.#all = all
    this.call = call
    this.at = at
    this.deadline = deadline
    this.exposureVersion = at.row.exposure_version
    all.add(this)
  }

  [Symbol.dispose](): void {
    this.#all.delete(this)
  }
}

export function openRunning(deps: RunningDeps): RunningQueries {
  return new WatchedQueries(deps)
}

class WatchedQueries implements RunningQueries {
  readonly #deps: RunningDeps
  readonly #queries = new Set<Query>()
  #timer: NodeJS.Timeout | undefined
  #isEnding = false

  constructor(deps: RunningDeps) {
    this.#deps = deps
  }

  add(call: Call, at: Reached, deadline: Deadline): Disposable {
    if (this.#isEnding) throw shuttingDown()
    this.#timer ??= this.#start()
    return new Query(this.#queries, call, at, deadline)
  }

  get count(): number {
    return this.#queries.size
  }

  endAll(): void {
    this.#isEnding = true
    for (const { deadline } of this.#queries) deadline.end(shuttingDown())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.endAll()
  }

  /** Starts the timer that all queries share. It stops when no query is running. */
  #start(): NodeJS.Timeout {
    const timer = setInterval(() => {
      const before = performance.now() - CHECK_MS
      for (const query of this.#queries) {
        if (query.since <= before && !query.deadline.signal.aborted) void this.#check(query)
      }
      if (this.#queries.size > 0) return
      clearInterval(timer)
      this.#timer = undefined
    }, CHECK_MS)
    timer.unref()
    return timer
  }

  async #check(query: Query): Promise<void> {
    const { call, at, deadline } = query
    try {
      const caller = await this.#deps.again(call.caller)
      const now = await this.#deps.reach({ ...call, caller }, at)
      requireEnabled(now.row)
      if (now.row.connection_version !== at.row.connection_version) deadline.end(changedJustNow())
      const version = now.row.exposure_version
      if (version === query.exposureVersion) return
      if (await this.#deps.narrowed(now, query.exposureVersion)) deadline.end(narrowedJustNow())
      else query.exposureVersion = version
    } catch (error) {
      if (error instanceof AppError && ENDING.has(error.code)) deadline.end(error)
    }
  }
}

function shuttingDown(): AppError {
  return overloaded('The service is shutting down.')
}
