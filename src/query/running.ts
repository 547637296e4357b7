// The queries under way in this process. Each one is looked at again while it runs: when its caller, key, membership or
// datasource loses the right to it, the query is cancelled in the database and its caller gets the refusal that a new
// request would get. A process that shuts down ends what is left in the same way.
import type { Call, Caller } from '../auth/caller.ts'
import type { Deadline } from '../datasources/deadline.ts'
import { changedJustNow, overloaded, requireEnabled } from '../datasources/refusals.ts'
import type { Reached } from '../datasources/reach.ts'
import { AppError, type Code } from '../errors.ts'

/** A query is looked at every so often; one that is shorter is never looked at. */
const LOOK_MS = 400

/** The refusals that end a query under way. A store that does not answer, or has no time (OVERLOADED), ends nothing. */
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
  /** The caller as of now. Throws UNAUTHENTICATED for a key or session that has ended. */
  again(caller: Caller): Promise<Caller>
  /** The datasource as of now. Throws what a new request would be refused with. */
  reach(call: Call, at: Reached): Promise<Reached>
}

export interface RunningQueries extends AsyncDisposable {
  /** Counts a query as under way until it is disposed. Throws OVERLOADED once endAll() was called. */
  add(call: Call, at: Reached, deadline: Deadline): Disposable
  /** Ends all queries under way; callers get OVERLOADED (503). Later ones are refused. */
  endAll(): void
}

interface Query {
  readonly call: Call
  readonly at: Reached
  readonly deadline: Deadline
  readonly since: number
}

export function openRunning(deps: RunningDeps): RunningQueries {
  return new LookedAt(deps)
}

class LookedAt implements RunningQueries {
  readonly #deps: RunningDeps
  readonly #queries = new Set<Query>()
  #timer: NodeJS.Timeout | undefined
  #isEnding = false

  constructor(deps: RunningDeps) {
    this.#deps = deps
  }

  add(call: Call, at: Reached, deadline: Deadline): Disposable {
    if (this.#isEnding) throw shuttingDown()
    const query: Query = { call, at, deadline, since: performance.now() }
    this.#queries.add(query)
    this.#timer ??= this.#start()
    return { [Symbol.dispose]: () => void this.#queries.delete(query) }
  }

  endAll(): void {
    this.#isEnding = true
    for (const { deadline } of this.#queries) deadline.end(shuttingDown())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.endAll()
  }

  /** One timer for all, which stops when nothing runs. */
  #start(): NodeJS.Timeout {
    const timer = setInterval(() => {
      const before = performance.now() - LOOK_MS
      for (const query of this.#queries) {
        if (query.since <= before && !query.deadline.signal.aborted) void this.#look(query)
      }
      if (this.#queries.size > 0) return
      clearInterval(timer)
      this.#timer = undefined
    }, LOOK_MS)
    timer.unref()
    return timer
  }

  async #look({ call, at, deadline }: Query): Promise<void> {
    try {
      const caller = await this.#deps.again(call.caller)
      const now = await this.#deps.reach({ ...call, caller }, at)
      requireEnabled(now.row)
      if (now.row.connection_version !== at.row.connection_version) deadline.end(changedJustNow())
    } catch (error) {
      if (error instanceof AppError && ENDING.has(error.code)) deadline.end(error)
    }
  }
}

function shuttingDown(): AppError {
  return overloaded('The service is shutting down.')
}
