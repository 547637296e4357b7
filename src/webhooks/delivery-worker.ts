// Serves all webhooks: checks once a minute for new conditions, and every few seconds for due deliveries. Every process
// of a store does this. The store ensures that each condition is reported once, and that one process claims a delivery.
import type { Secrets } from '../secrets.ts'
import { inSlices } from '../event-loop-slices.ts'
import type { Store } from '../store/open.ts'
import { ConditionFinder, type ConditionDeps } from './find-conditions.ts'
import { claimDue, enqueue, note, pruneDeliveries, release, type Claimed } from './delivery-queue.ts'
import { send, type SendOptions } from './send-message.ts'
import { openedOf } from './webhooks.ts'

export interface Deliverer extends AsyncDisposable {
  /** Queues messages for new conditions. */
  look(): Promise<void>
  /** Sends the due deliveries. */
  deliver(): Promise<void>
}

interface Deps extends Omit<ConditionDeps, 'now'> {
  readonly store: Store
  readonly secrets: Pick<Secrets, 'open'>
  readonly sending: SendOptions
  readonly log: { error(detail: object, message: string): void }
}

/** The interval between two searches for new conditions. */
const LOOK_MS = 60_000
/** The interval between two searches for due deliveries. */
const DELIVER_MS = 5_000
/** The maximum number of messages that this process sends at the same time. */
const AT_ONCE = 4

export function openDeliverer(deps: Deps): Deliverer {
  const { store, secrets, sending, log } = deps
  const ending = new AbortController()
  const lookOnce = async (): Promise<void> => {
    const webhooks = await store.db.selectFrom('webhooks').selectAll().where('enabled', '=', 1).orderBy('id').execute()
    if (webhooks.length === 0) return
    const turn = inSlices()
    const finder = new ConditionFinder({ ...deps, now: sending.now }, turn)
    for (const webhook of webhooks) {
      if (ending.signal.aborted) return
      await turn()
      const conditions = await finder.conditionsFor(webhook)
      if (conditions !== null) await enqueue(store, webhook, conditions, sending.now())
    }
    await pruneDeliveries(store, sending.now())
  }
  const attempt = async (claimed: Claimed): Promise<void> => {
    const { delivery, webhook } = claimed
    try {
      const outgoing = { id: delivery.id, body: delivery.body, ...openedOf(secrets, webhook) }
      await note(store, claimed, await send(outgoing, sending, ending.signal), sending.now())
    } catch (err) {
      await release(store, claimed)
      if (!ending.signal.aborted) throw err
    }
  }
  const deliverOnce = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      const claimed = [...(await claimDue(store, sending.now()))]
      if (claimed.length === 0) return
      const worker = async () => {
        for (let next = claimed.shift(); next !== undefined; next = claimed.shift()) await attempt(next)
      }
      await Promise.all(Array.from({ length: AT_ONCE }, worker))
    }
  }
  const look = oneAtATime(lookOnce)
  const deliver = oneAtATime(deliverOnce)
  const every = (ms: number, work: () => Promise<void>) => {
    const timer = setInterval(() => {
      work().catch((err: unknown) => log.error({ err }, 'webhooks: a round failed and will be repeated'))
    }, ms)
    timer.unref()
    return timer
  }
  const timers = [every(LOOK_MS, look), every(DELIVER_MS, deliver)]
  return {
    look,
    deliver,
    async [Symbol.asyncDispose]() {
      for (const timer of timers) clearInterval(timer)
      ending.abort()
      await Promise.allSettled([look(), deliver()])
    },
  }
}

/**
 * Returns a function that runs `work`. While `work` runs, further calls wait for its end instead of starting it again.
 */
function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  return () => (running ??= work().finally(() => (running = undefined)))
}
