// Limits the slow work of one kind that runs at the same time in this process. A ConcurrencyLimit refuses work beyond
// the limit at once. A FairLimit lets it wait in a queue. No requester can take all slots, or fill the queue.
import { AppError } from './errors.ts'

interface Requester {
  readonly caller: { readonly accountId: string }
  readonly address?: string | undefined
}

export interface ConcurrencyLimit {
  /** Takes a slot for work on `key`, until the result is disposed. Throws RATE_LIMITED with `retryAfter`. */
  take(key: string, call: Requester, teamId: string): Disposable
}

interface Limits {
  readonly each: number
  readonly all: number
  readonly retryAfterSeconds: number
  /** A sentence about the work that is running. */
  readonly why: string
}

/**
 * A requester gets another slot only while it holds fewer slots than this share of the free slots. So an account never
 * holds more than a quarter of all slots. A person may have several accounts, but they often share a team or a network.
 * A network may hold half of all slots, because many people may share it.
 */
const SHARE = { account: 1 / 4, team: 1 / 4, network: 1 }

export function openConcurrencyLimit(limits: Limits, networkOf: (address: string) => string): ConcurrencyLimit {
  const { each, all, retryAfterSeconds: retryAfter, why } = limits
  const held = new Map<string, number>()
  let total = 0
  const add = (names: readonly string[], by: 1 | -1) => {
    for (const name of names) {
      const count = (held.get(name) ?? 0) + by
      if (count === 0) held.delete(name)
      else held.set(name, count)
    }
    total += by
  }
  return {
    take(key, { caller, address }, teamId) {
      const free = all - total
      const maxima = new Map([
        [`key ${key}`, each],
        [`account ${caller.accountId}`, free * SHARE.account],
        [`team ${teamId}`, free * SHARE.team],
        ...(address === undefined ? [] : [[`network ${networkOf(address)}`, free * SHARE.network] as const]),
      ])
      const isFree = [...maxima].every(([name, max]) => (held.get(name) ?? 0) < max)
      if (!isFree) throw new AppError('RATE_LIMITED', `${why} Wait ${retryAfter} s.`, { extra: { retryAfter } })
      const names = [...maxima.keys()]
      add(names, 1)
      return { [Symbol.dispose]: () => add(names, -1) }
    },
  }
}

export interface FairLimit {
  /**
   * Waits until the work may run. Disposing the result frees the slot. Work with the same key runs in the order of
   * arrival, and keys take turns. With `wait`, returns null if too much work waits or the time is over, and throws the
   * reason of the signal if it aborts first.
   */
  take(key: string): Promise<Disposable>
  take(key: string, wait: Wait): Promise<Disposable | null>
}

interface Wait {
  readonly waitMs?: number
  readonly signal?: AbortSignal
  /** Lanes with waiting work take turns, so that a long queue in one lane does not delay another lane. */
  readonly lane?: string
  /** True if this is a further part of work that has begun. It may wait even if too much work waits. */
  readonly hasBegun?: boolean
}

interface FairLimits {
  readonly each: number
  readonly all: number
  /**
   * Without this number, any amount of work may wait. A key takes at most a fifth of all waiting places: it gets
   * another place only while it has fewer than a quarter of the free ones.
   */
  readonly waiting?: number
}

export function openFairLimit(limits: FairLimits): FairLimit {
  return new FairSlots(limits)
}

const WAITING_SHARE = 1 / 4

class FairSlots implements FairLimit {
  readonly #each: number
  readonly #all: Slots
  readonly #waitingMax: number
  #waiting = 0
  readonly #ofKeys = new Map<string, { readonly slots: Slots; waiting: number }>()

  constructor({ each, all, waiting = Infinity }: FairLimits) {
    this.#each = each
    this.#all = new Slots(all)
    this.#waitingMax = waiting
  }

  take(key: string): Promise<Disposable>
  take(key: string, wait: Wait): Promise<Disposable | null>
  async take(key: string, wait?: Wait): Promise<Disposable | null> {
    const ofKey = this.#ofKeys.get(key) ?? { slots: new Slots(this.#each), waiting: 0 }
    const free = this.#waitingMax - this.#waiting
    if (wait !== undefined && wait.hasBegun !== true && ofKey.waiting >= free * WAITING_SHARE) return null
    this.#ofKeys.set(key, ofKey)
    ofKey.waiting++
    this.#waiting++
    let isTaken = false
    try {
      isTaken = await this.#wait(ofKey.slots, wait)
    } finally {
      this.#waiting--
      ofKey.waiting--
      if (!isTaken) this.#forget(key)
    }
    if (!isTaken) return null
    return {
      [Symbol.dispose]: () => {
        this.#all.release()
        ofKey.slots.release()
        this.#forget(key)
      },
    }
  }

  async #wait(ofKey: Slots, { waitMs, signal, lane = '' }: Wait = {}): Promise<boolean> {
    signal?.throwIfAborted()
    const until = waitMs === undefined ? null : performance.now() + waitMs
    if (!ofKey.takeNow() && !(await ofKey.take(lane, until, signal))) return false
    let isTaken = false
    try {
      isTaken = this.#all.takeNow() || (await this.#all.take(lane, until, signal))
      return isTaken
    } finally {
      if (!isTaken) ofKey.release()
    }
  }

  #forget(key: string): void {
    const ofKey = this.#ofKeys.get(key)
    if (ofKey?.waiting === 0 && ofKey.slots.isUnused) this.#ofKeys.delete(key)
  }
}

/** Lanes get slots in turn. Within a lane, the oldest work comes first. */
class Slots {
  #taken = 0
  readonly #max: number
  /** The first lane has the next turn, and the first work in it is the oldest. */
  readonly #waiting = new Map<string, Set<(isTaken: boolean) => void>>()

  constructor(max: number) {
    this.#max = max
  }

  get isUnused(): boolean {
    return this.#taken === 0 && this.#waiting.size === 0
  }

  takeNow(): boolean {
    if (this.#taken >= this.#max) return false
    this.#taken++
    return true
  }

  /** Returns false at the time `until`. Throws if `signal` aborts first. */
  async take(lane: string, until: number | null, signal: AbortSignal | undefined): Promise<boolean> {
    signal?.throwIfAborted()
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const waiting = this.#waiting.get(lane) ?? new Set()
    this.#waiting.set(lane, waiting.add(resolve))
    const leave = () => {
      if (waiting.delete(resolve) && waiting.size === 0) this.#waiting.delete(lane)
      resolve(false)
    }
    const timer = until === null ? undefined : setTimeout(leave, until - performance.now())
    signal?.addEventListener('abort', leave)
    try {
      const isTaken = await promise
      if (!isTaken) signal?.throwIfAborted()
      return isTaken
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', leave)
    }
  }

  release(): void {
    for (const [lane, waiting] of this.#waiting) {
      this.#waiting.delete(lane)
      for (const next of waiting) {
        waiting.delete(next)
        if (waiting.size > 0) this.#waiting.set(lane, waiting)
        return next(true)
      }
    }
    this.#taken--
  }
}
