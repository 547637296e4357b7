// The JSON and the routes of a team's webhooks (docs/webhooks.md).
import { z } from 'zod'
import type { Route } from './route-type.ts'
import { at, count, name, text } from './schemas.ts'

export const WEBHOOK_EVENTS = ['refusals', 'drift', 'keyExpiring', 'datasourceError'] as const
const Event = z.enum(WEBHOOK_EVENTS)
const Format = z.enum(['JSON', 'SLACK'])
/** The event `refusals` is sent after `count` refused queries of the team within `minutes`. */
const Refusals = z.strictObject({ count: z.int().min(1).max(1_000_000), minutes: z.int().min(1).max(1_440) })

const url = text(2_000)
  .refine((value) => isAddress(value), 'must be an http:// or https:// address without user, password and fragment')
  .meta({ description: 'Write-only: the address of a chat service contains a secret.' })
const events = z
  .array(Event)
  .min(1)
  .max(WEBHOOK_EVENTS.length)
  .refine((all) => new Set(all).size === all.length, 'must not name an event twice')

function isAddress(value: string): boolean {
  const parsed = URL.parse(value)
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.hostname === '') return false
  return parsed.username === '' && parsed.password === '' && parsed.hash === ''
}

const WebhookOrder = z.strictObject({
  name,
  url,
  format: Format.exactOptional(),
  events,
  refusals: Refusals.exactOptional(),
})

const WebhookChange = z.strictObject({
  name: name.exactOptional(),
  url: url.exactOptional(),
  format: Format.exactOptional(),
  events: events.exactOptional(),
  refusals: Refusals.exactOptional(),
  enabled: z.boolean().exactOptional(),
  newSecret: z
    .literal(true)
    .exactOptional()
    .meta({ description: 'Creates a new secret. The old secret stops working at once.' }),
})

const Webhook = z.object({
  id: z.string(),
  name: z.string(),
  host: z.string().meta({ description: 'The host of the address. The rest of the address is not shown.' }),
  format: Format,
  events: z.array(Event),
  refusals: Refusals,
  enabled: z.boolean(),
  createdAt: at,
  accountId: z.string().meta({
    description:
      'The account that created or last changed the webhook. Events cover the datasources that this account reaches.',
  }),
  waiting: count.meta({ description: 'The number of deliveries that are pending or being retried.' }),
  dropped: count.meta({ description: 'The number of events that were dropped because the queue was full.' }),
})
/** `secret` is never shown again. */
const FreshWebhook = Webhook.extend({ secret: z.string().optional() })

const WebhookTest = z.object({
  delivered: z.boolean(),
  status: z.int().min(0).nullable().meta({ description: 'The status of the answer. Null if there was no answer.' }),
  error: z.string().nullable(),
  durationMs: z.number().min(0),
})

const Delivery = z.object({
  id: z.string().meta({ description: 'The value of the header webhook-id.' }),
  event: Event,
  createdAt: at,
  state: z.enum(['WAITING', 'DELIVERED', 'FAILED']),
  attempts: count,
  lastAt: at.nullable(),
  nextAt: at.nullable().meta({ description: 'The time of the next attempt.' }),
  status: z.int().min(0).nullable().meta({ description: 'The status of the last answer.' }),
  error: z.string().nullable(),
})

const TEAM = { place: 'team', role: 'ADMIN' } as const

export const WEBHOOK_ROUTES = {
  listWebhooks: {
    method: 'GET',
    path: '/teams/{teamId}/webhooks',
    summary: 'Lists the webhooks of a team, oldest first.',
    ...TEAM,
    answer: z.array(Webhook),
    errors: [],
  },
  createWebhook: {
    method: 'POST',
    path: '/teams/{teamId}/webhooks',
    summary: 'Creates a webhook. Its secret is shown only once.',
    ...TEAM,
    body: WebhookOrder,
    answer: FreshWebhook,
    status: 201,
    errors: ['CONFLICT'],
  },
  changeWebhook: {
    method: 'PATCH',
    path: '/teams/{teamId}/webhooks/{webhookId}',
    summary: 'Changes a webhook, or creates a new secret.',
    ...TEAM,
    body: WebhookChange,
    answer: FreshWebhook,
    errors: [],
  },
  deleteWebhook: {
    method: 'DELETE',
    path: '/teams/{teamId}/webhooks/{webhookId}',
    summary: 'Deletes a webhook with its deliveries.',
    ...TEAM,
    answer: null,
    status: 204,
    errors: [],
  },
  testWebhook: {
    method: 'POST',
    path: '/teams/{teamId}/webhooks/{webhookId}/test',
    summary: 'Sends a message of the type test once, and returns the receiver’s answer.',
    ...TEAM,
    answer: WebhookTest,
    errors: ['RATE_LIMITED'],
  },
  listDeliveries: {
    method: 'GET',
    path: '/teams/{teamId}/webhooks/{webhookId}/deliveries',
    summary: 'Lists the deliveries of the last seven days, newest first, at most 100.',
    ...TEAM,
    answer: z.array(Delivery),
    errors: [],
  },
} as const satisfies Record<string, Route>
