// Looks for new conditions once a minute, and for deliveries to send every few seconds. Every process does this, but
// each condition is reported only once, and each delivery is sent by only one process. Webhooks and accounts take
// turns, so a slow receiver delays only the webhooks of its own account.
import { openFairLimit } from '../concurrency-limit.ts'
import type { WebhookId } from '../ids.ts'
import type { Secrets } from '../secrets.ts'
import { inSlices } from '../event-loop-slices.ts'
import type { Store } from '../store/open.ts'
import { ConditionFinder, type ConditionDeps } from './find-conditions.ts'
import { claimNext, enqueue, note, pruneDeliveries, release, webhooksWithDue, type Claimed } from './delivery-queue.ts'
import { send, type SendOptions } from './send-message.ts'
import { openedOf, type WebhookRow } from './webhooks.ts'

export interface Deliverer extends AsyncDisposable {
  /** Queues messages for new conditions. */
  look(): Promise<void>
  deliver(): Promise<void>
}

interface Deps extends Omit<ConditionDeps, 'now'> {
  readonly store: Store
  readonly secrets: Pick<Secrets, 'open'>
  readonly sending: SendOptions
  readonly log: { error(detail: object, message: string): void }
}

const LOOK_MS = 60_000
const DELIVER_MS = 5_000
/**
 * How many messages this process sends at the same time: for one account, and in total. A webhook sends one message at
 * a time. An account can have 100 teams, whose silent receivers must not take all places.
 */
const AT_ONCE = { each: 2, all: 8 }

export function openDeliverer(deps: Deps): Deliverer {
  const { store, secrets, sending, log } = deps
  const ending = new AbortController()
  const failed = (err: unknown) => log.error({ err }, 'webhooks: a round failed and will be repeated')
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
  const slots = openFairLimit(AT_ONCE)
  /** The webhooks whose due deliveries are being sent, one after the other. */
  const serving = new Map<WebhookId, Promise<void>>()
  const serve = async ({ id, account_id }: Pick<WebhookRow, 'id' | 'account_id'>): Promise<void> => {
    while (!ending.signal.aborted) {
      using _slot = await slots.take(account_id)
      const claimed = ending.signal.aborted ? null : await claimNext(store, id, sending.now())
      if (claimed === null) return
      await attempt(claimed)
    }
  }
  /** Begins to send the due deliveries, without waiting for them. */
  const start = async (): Promise<void> => {
    for (const webhook of await webhooksWithDue(store, sending.now())) {
      const { id } = webhook
      if (ending.signal.aborted) return
      if (serving.has(id)) continue
      const served = serve(webhook)
        .catch(failed)
        .finally(() => serving.delete(id))
      serving.set(id, served)
    }
  }
  const deliver = async (): Promise<void> => {
    await start()
    await Promise.all(serving.values())
  }
  const look = oneAtATime(lookOnce)
  const every = (ms: number, work: () => Promise<void>) => {
    const timer = setInterval(() => {
      work().catch(failed)
    }, ms)
    timer.unref()
    return timer
  }
  const timers = [every(LOOK_MS, look), every(DELIVER_MS, oneAtATime(start))]
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

/** Returns a function that runs `work`. A call while `work` runs joins that run. */
function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  return () => (running ??= work().finally(() => (running = undefined)))
}
