// The queue of deliveries is in the store. A process claims a delivery and then sends it. If the process stops, its
// claim expires after a minute, and another process sends the delivery. A failed delivery is retried for half a day,
// with growing pauses.
import type { ExpressionBuilder, Transaction } from 'kysely'
import { newId, type DeliveryId, type WebhookId } from '../ids.ts'
import { deleteInPortions } from '../store/delete-in-portions.ts'
import type { Store } from '../store/open.ts'
import type { Tables, WebhookDeliveryTable } from '../store/tables.ts'
import { bodyOf, type Condition } from './event-messages.ts'
import type { Sent } from './send-message.ts'
import type { WebhookRow } from './webhooks.ts'

/** The maximum number of waiting deliveries of one webhook. More events are only counted. */
const WAITING_MAX = 200
/** How many conditions of a webhook are watched, and how many begin or end in one look. The others wait for the next. */
const CONDITIONS_MAX = 2_000
const CHANGES_MAX = 200
const CLAIM_MS = 60_000
/** The pauses before the second attempt, the third attempt, and so on. */
const PAUSES_MS = [10_000, 60_000, 300_000, 1_800_000, 7_200_000, 14_400_000, 21_600_000] as const
/** Deliveries that have ended are deleted at this age. */
const KEPT_MS = 7 * 86_400_000

export interface Claimed {
  readonly delivery: Pick<WebhookDeliveryTable, 'id' | 'body' | 'attempts'>
  readonly webhook: WebhookRow
}

/**
 * Queues a message for each condition that was not true before, up to CHANGES_MAX and WAITING_MAX, and returns their
 * number. Each message is queued once, even if two processes call this at the same time.
 */
export async function enqueue(
  store: Store,
  webhook: WebhookRow,
  found: readonly Condition[],
  now: number,
): Promise<number> {
  const conditions = found.slice(0, CONDITIONS_MAX)
  const known = await keysOf(store.db, webhook.id)
  const holding = new Set(conditions.map(({ key }) => key))
  if (conditions.every(({ key }) => known.has(key)) && [...known].every((key) => holding.has(key))) return 0
  return await store.append(async (tx) => {
    const before = await keysOf(tx, webhook.id)
    const ended = [...before].filter((key) => !holding.has(key)).slice(0, CHANGES_MAX)
    const begun = conditions.filter(({ key }) => !before.has(key)).slice(0, CHANGES_MAX)
    if (ended.length > 0) {
      await tx.deleteFrom('webhook_conditions').where('webhook_id', '=', webhook.id).where('key', 'in', ended).execute()
    }
    if (begun.length > 0) {
      const rows = begun.map(({ key }) => ({ webhook_id: webhook.id, key }))
      await tx.insertInto('webhook_conditions').values(rows).execute()
    }
    return await add(tx, webhook, begun, now)
  })
}

async function keysOf(db: Store['db'], id: WebhookId): Promise<ReadonlySet<string>> {
  const rows = await db.selectFrom('webhook_conditions').select('key').where('webhook_id', '=', id).execute()
  return new Set(rows.map(({ key }) => key))
}

async function add(
  tx: Transaction<Tables>,
  webhook: WebhookRow,
  begun: readonly Condition[],
  now: number,
): Promise<number> {
  const team = await tx.selectFrom('teams').select('name').where('id', '=', webhook.team_id).executeTakeFirst()
  if (team === undefined || begun.length === 0) return 0
  const { length: waiting } = await tx
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('webhook_id', '=', webhook.id)
    .where('state', '=', 'WAITING')
    .execute()
  const kept = begun.slice(0, Math.max(0, WAITING_MAX - waiting))
  const at = new Date(now).toISOString()
  for (const { event, text, data } of kept) {
    const id = newId<DeliveryId>()
    const body = bodyOf(webhook.format, {
      id,
      type: event,
      at,
      team: { id: webhook.team_id, name: team.name },
      text,
      data,
    })
    const times = { created_at: at, next_at: at, claimed_until: null, last_at: null }
    const row = { id, webhook_id: webhook.id, event, body, ...times, attempts: 0, status: null, error: null }
    await tx
      .insertInto('webhook_deliveries')
      .values({ ...row, state: 'WAITING' })
      .execute()
  }
  const dropped = begun.length - kept.length
  if (dropped > 0) {
    await tx
      .updateTable('webhooks')
      .set((eb) => ({ dropped: eb('dropped', '+', dropped) }))
      .where('id', '=', webhook.id)
      .execute()
  }
  return kept.length
}

function isDue(at: string) {
  return (eb: ExpressionBuilder<Tables, 'webhooks' | 'webhook_deliveries'>) =>
    eb.and([
      eb('enabled', '=', 1),
      eb('state', '=', 'WAITING'),
      eb('next_at', '<=', at),
      eb.or([eb('claimed_until', 'is', null), eb('claimed_until', '<=', at)]),
    ])
}

export async function webhooksWithDue(
  { db }: Store,
  now: number,
): Promise<readonly Pick<WebhookRow, 'id' | 'account_id'>[]> {
  const holds = isDue(new Date(now).toISOString())
  return await db
    .selectFrom('webhooks')
    .select(['id', 'account_id'])
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('webhook_deliveries')
          .select('webhook_deliveries.id')
          .whereRef('webhook_id', '=', 'webhooks.id')
          .where(holds),
      ),
    )
    .orderBy('id')
    .execute()
}

/** Claims the longest due delivery of a webhook. Returns null if none is due. */
export async function claimNext(store: Store, webhookId: WebhookId, now: number): Promise<Claimed | null> {
  const at = new Date(now).toISOString()
  for (;;) {
    const next = await store.db
      .selectFrom('webhook_deliveries')
      .innerJoin('webhooks', 'webhooks.id', 'webhook_deliveries.webhook_id')
      .selectAll('webhooks')
      .select(['webhook_deliveries.id as delivery_id', 'body', 'attempts'])
      .where('webhook_id', '=', webhookId)
      .where(isDue(at))
      .orderBy('next_at')
      .limit(1)
      .executeTakeFirst()
    if (next === undefined) return null
    const { delivery_id: id, body, attempts, ...webhook } = next
    const { numUpdatedRows } = await store.append((tx) =>
      tx
        .updateTable('webhook_deliveries')
        .set({ claimed_until: new Date(now + CLAIM_MS).toISOString() })
        .where('id', '=', id)
        .where('state', '=', 'WAITING')
        .where((eb) => eb.or([eb('claimed_until', 'is', null), eb('claimed_until', '<=', at)]))
        .executeTakeFirstOrThrow(),
    )
    if (numUpdatedRows === 1n) return { delivery: { id, body, attempts }, webhook }
  }
}

export async function note(store: Store, { delivery }: Claimed, sent: Sent, now: number): Promise<void> {
  const attempts = delivery.attempts + 1
  const pause = PAUSES_MS[attempts - 1]
  const state = sent.delivered ? 'DELIVERED' : pause === undefined ? 'FAILED' : 'WAITING'
  const at = new Date(now).toISOString()
  const { status, error } = sent
  const next_at = new Date(now + (pause ?? 0)).toISOString()
  await store.append((tx) =>
    tx
      .updateTable('webhook_deliveries')
      .set({ state, attempts, status, error, last_at: at, next_at, claimed_until: null })
      .where('id', '=', delivery.id)
      .execute(),
  )
}

/** Gives up a claim without an attempt, so that any process can claim the delivery. */
export async function release(store: Store, { delivery }: Claimed): Promise<void> {
  await store.append((tx) =>
    tx.updateTable('webhook_deliveries').set({ claimed_until: null }).where('id', '=', delivery.id).execute(),
  )
}

export async function pruneDeliveries(store: Store, now: number): Promise<void> {
  const before = new Date(now - KEPT_MS).toISOString()
  await deleteInPortions(store, 'webhook_deliveries', (eb) =>
    eb.and([eb('created_at', '<', before), eb('state', '!=', 'WAITING')]),
  )
}
