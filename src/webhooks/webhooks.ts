// Managers of a team create, change and delete its webhooks. The URL and the secret are stored encrypted, and the
// secret is shown once. A webhook reports only what the account that created or last changed it can reach. When this
// account no longer manages the team, the webhook reports nothing.
import { randomBytes } from 'node:crypto'
import type { Selectable, Transaction } from 'kysely'
import { z } from 'zod'
import { changesOf, SET, NOT_SET, type Fields, type Target } from '../audit/recorded-changes.ts'
import type { Call } from '../auth/caller.ts'
import { WEBHOOK_EVENTS } from '../contract/webhook-schemas.ts'
import { AppError, notFound } from '../errors.ts'
import { newId, type TeamId, type WebhookId } from '../ids.ts'
import type { ConcurrencyLimit } from '../concurrency-limit.ts'
import type { Secrets } from '../secrets.ts'
import { hideWebhook, removeHidden } from '../store/delete-team.ts'
import type { Store } from '../store/open.ts'
import type { Tables, WebhookTable } from '../store/tables.ts'
import { changing, type TeamChangeDeps } from '../teams/change-in-team.ts'
import type { Membership } from '../teams/require-membership.ts'
import { bodyOf, type WebhookEvent, type WebhookFormat } from './event-messages.ts'
import { send, type SendOptions, type Sent } from './send-message.ts'

export interface WebhookDeps extends TeamChangeDeps {
  readonly secrets: Pick<Secrets, 'seal' | 'open'>
  readonly webhookTests: ConcurrencyLimit
  readonly sending: SendOptions
}

export type WebhookRow = Selectable<WebhookTable>

export interface ShownWebhook {
  readonly id: string
  readonly name: string
  readonly host: string
  readonly format: WebhookFormat
  readonly events: readonly WebhookEvent[]
  readonly refusals: { readonly count: number; readonly minutes: number }
  readonly enabled: boolean
  readonly createdAt: string
  readonly accountId: string
  readonly waiting: number
  readonly dropped: number
  /** Only in the answer to the request that creates the secret. */
  readonly secret?: string
}

interface Settings {
  readonly name: string
  readonly url: string
  readonly format?: WebhookFormat
  readonly events: readonly WebhookEvent[]
  readonly refusals?: ShownWebhook['refusals']
}

type Changed = Partial<Settings> & { readonly enabled?: boolean; readonly newSecret?: true }

const WEBHOOKS_MAX = 10
const REFUSALS = { count: 20, minutes: 60 }
const SECRET_BYTES = 32
const DELIVERIES_SHOWN = 100

const Events = z.array(z.enum(WEBHOOK_EVENTS))

export function eventsOf(row: Pick<WebhookRow, 'events'>): readonly WebhookEvent[] {
  return Events.parse(JSON.parse(row.events))
}

export function openedOf(
  secrets: Pick<Secrets, 'open'>,
  row: WebhookRow,
): { readonly url: string; readonly secret: string } {
  const place = { teamId: row.team_id, datasourceId: row.id }
  return {
    url: secrets.open({ ...place, field: 'webhook url' }, row.sealed_url),
    secret: secrets.open({ ...place, field: 'webhook secret' }, row.sealed_secret),
  }
}

export async function listWebhooks({ store }: WebhookDeps, { teamId }: Membership): Promise<readonly ShownWebhook[]> {
  const rows = await ofTeam(store.db, teamId).orderBy('created_at').orderBy('id').execute()
  return await Promise.all(rows.map((row) => shown(store.db, row)))
}

/** Throws CONFLICT if the team has too many webhooks. */
export async function createWebhook(
  deps: WebhookDeps,
  call: Call,
  { teamId }: Membership,
  order: Settings,
): Promise<ShownWebhook> {
  const id = newId<WebhookId>()
  const secret = newSecret()
  const refusals = order.refusals ?? REFUSALS
  const row: WebhookRow = {
    id,
    team_id: teamId,
    account_id: call.caller.accountId,
    name: order.name,
    host: new URL(order.url).host,
    format: order.format ?? 'JSON',
    events: JSON.stringify(order.events),
    refusals_count: refusals.count,
    refusals_minutes: refusals.minutes,
    enabled: 1,
    ...sealed(deps, teamId, id, { url: order.url, secret }),
    dropped: 0,
    created_at: new Date((deps.now ?? Date.now)()).toISOString(),
  }
  return await changing(deps, call, teamId, async (tx) => {
    const { length } = await ofTeam(tx, teamId).execute()
    if (length >= WEBHOOKS_MAX)
      throw new AppError('CONFLICT', `A team has at most ${WEBHOOKS_MAX} webhooks. Delete one first.`)
    await tx.insertInto('webhooks').values(row).execute()
    const changes = changesOf(null, { ...audited(row), secret: SET })
    return { value: { ...(await shown(tx, row)), secret }, target: targetOf(row), changes }
  })
}

export async function changeWebhook(
  deps: WebhookDeps,
  call: Call,
  { teamId }: Membership,
  id: WebhookId,
  change: Changed,
): Promise<ShownWebhook> {
  return await changing(deps, call, teamId, async (tx) => {
    const row = await rowOf(tx, teamId, id)
    const opened = openedOf(deps.secrets, row)
    const secret = change.newSecret === true ? newSecret() : undefined
    const url = change.url ?? opened.url
    const set = {
      account_id: call.caller.accountId,
      name: change.name ?? row.name,
      host: new URL(url).host,
      format: change.format ?? row.format,
      events: change.events === undefined ? row.events : JSON.stringify(change.events),
      refusals_count: change.refusals?.count ?? row.refusals_count,
      refusals_minutes: change.refusals?.minutes ?? row.refusals_minutes,
      enabled: change.enabled === undefined ? row.enabled : Number(change.enabled),
      ...sealed(deps, teamId, id, { url, secret: secret ?? opened.secret }),
    }
    await tx.updateTable('webhooks').set(set).where('id', '=', id).execute()
    const after = { ...row, ...set }
    const changes = changesOf(
      {
        ...audited(row),
        ...(url !== opened.url && { url: 'former' }),
        ...(secret !== undefined && { secret: 'former' }),
      },
      { ...audited(after), ...(url !== opened.url && { url: SET }), ...(secret !== undefined && { secret: SET }) },
    )
    const value = { ...(await shown(tx, after)), ...(secret !== undefined && { secret }) }
    return { value, target: targetOf(after), changes }
  })
}

export async function deleteWebhook(
  deps: WebhookDeps,
  call: Call,
  { teamId }: Membership,
  id: WebhookId,
): Promise<void> {
  const hidden = await changing(deps, call, teamId, async (tx) => {
    const row = await rowOf(tx, teamId, id)
    const changes = changesOf({ ...audited(row), secret: SET }, { secret: NOT_SET })
    return { value: await hideWebhook(tx, id), target: targetOf(row), changes }
  })
  removeHidden(deps.store, hidden)
}

export async function testWebhook(
  deps: WebhookDeps,
  call: Call,
  { teamId }: Membership,
  id: WebhookId,
): Promise<Sent & { readonly durationMs: number }> {
  using _slot = deps.webhookTests.take(teamId, call, teamId)
  const row = await rowOf(deps.store.db, teamId, id)
  const team = await deps.store.db.selectFrom('teams').select('name').where('id', '=', teamId).executeTakeFirstOrThrow()
  const at = new Date(deps.sending.now()).toISOString()
  const message = { id: newId<WebhookId>(), type: 'test', at, team: { id: teamId, name: team.name } } as const
  const body = bodyOf(row.format, { ...message, text: `This is a test of the webhook “${row.name}”.`, data: {} })
  const began = performance.now()
  const sent = await send({ id: message.id, body, ...openedOf(deps.secrets, row) }, deps.sending, call.signal)
  await changing(deps, call, teamId, async () => {
    const changes = changesOf(null, { delivered: sent.delivered, status: sent.status, error: sent.error })
    return { value: undefined, target: targetOf(row), changes }
  })
  return { ...sent, durationMs: Math.round(performance.now() - began) }
}

interface ShownDelivery {
  readonly id: string
  readonly event: WebhookEvent
  readonly createdAt: string
  readonly state: 'WAITING' | 'DELIVERED' | 'FAILED'
  readonly attempts: number
  readonly lastAt: string | null
  readonly nextAt: string | null
  readonly status: number | null
  readonly error: string | null
}

export async function listDeliveries(
  { store }: WebhookDeps,
  { teamId }: Membership,
  id: WebhookId,
): Promise<readonly ShownDelivery[]> {
  await rowOf(store.db, teamId, id)
  const rows = await store.db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where('webhook_id', '=', id)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(DELIVERIES_SHOWN)
    .execute()
  return rows.map((row) => ({
    id: row.id,
    event: row.event,
    createdAt: row.created_at,
    state: row.state,
    attempts: row.attempts,
    lastAt: row.last_at,
    nextAt: row.state === 'WAITING' ? row.next_at : null,
    status: row.status,
    error: row.error,
  }))
}

export async function requireWebhook(
  { store }: Pick<WebhookDeps, 'store'>,
  { teamId }: Membership,
  id: WebhookId,
): Promise<void> {
  await rowOf(store.db, teamId, id)
}

async function rowOf(db: Store['db'], teamId: TeamId, id: WebhookId): Promise<WebhookRow> {
  const row = await ofTeam(db, teamId).where('id', '=', id).executeTakeFirst()
  if (row === undefined) throw notFound()
  return row
}

function ofTeam(db: Store['db'] | Transaction<Tables>, teamId: TeamId) {
  return db.selectFrom('webhooks').selectAll().where('team_id', '=', teamId)
}

function newSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`
}

function sealed(
  { secrets }: Pick<WebhookDeps, 'secrets'>,
  teamId: TeamId,
  id: WebhookId,
  { url, secret }: { readonly url: string; readonly secret: string },
) {
  const place = { teamId, datasourceId: id }
  return {
    sealed_url: secrets.seal({ ...place, field: 'webhook url' }, url),
    sealed_secret: secrets.seal({ ...place, field: 'webhook secret' }, secret),
  }
}

async function shown(db: Store['db'], row: WebhookRow): Promise<ShownWebhook> {
  const waiting = await db
    .selectFrom('webhook_deliveries')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('webhook_id', '=', row.id)
    .where('state', '=', 'WAITING')
    .executeTakeFirstOrThrow()
  return {
    id: row.id,
    name: row.name,
    host: row.host,
    format: row.format,
    events: eventsOf(row),
    refusals: { count: row.refusals_count, minutes: row.refusals_minutes },
    enabled: row.enabled === 1,
    createdAt: row.created_at,
    accountId: row.account_id,
    waiting: Number(waiting.count),
    dropped: row.dropped,
  }
}

/** The audit records only the host of the URL, because the rest may contain a secret. */
function audited(row: WebhookRow): Fields {
  return {
    name: row.name,
    host: row.host,
    format: row.format,
    events: [...eventsOf(row)],
    refusals: `${row.refusals_count} in ${row.refusals_minutes} minutes`,
    enabled: row.enabled === 1,
  }
}

function targetOf({ id, name }: Pick<WebhookRow, 'id' | 'name'>): Target {
  return { kind: 'webhook', id, name }
}
