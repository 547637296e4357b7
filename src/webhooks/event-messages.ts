// The messages that webhooks send. They contain counts, our own sentences, names of teams, datasources and API keys,
// and members' e-mail addresses. They contain no query, no value, and no name from a database.
import type { WEBHOOK_EVENTS } from '../contract/webhook-schemas.ts'

export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number]
export type WebhookFormat = 'JSON' | 'SLACK'

interface Named {
  readonly id: string
  readonly name: string
}

/** Something that is true now, such as an error of a datasource. A webhook reports it once, when it becomes true. */
export interface Condition {
  /** Does not change while the condition is true. */
  readonly key: string
  readonly event: WebhookEvent
  readonly text: string
  /** The same facts for programs. */
  readonly data: Readonly<Record<string, unknown>>
}

export function refusalsCondition(found: number, of: { readonly count: number; readonly minutes: number }): Condition {
  return {
    key: 'refusals',
    event: 'refusals',
    text: `${found} queries were refused within ${of.minutes} minutes. The threshold is ${of.count}.`,
    data: { refused: found, minutes: of.minutes, threshold: of.count },
  }
}

export function driftCondition(datasource: Named, driftCount: number): Condition {
  return {
    key: `drift ${datasource.id} ${driftCount}`,
    event: 'drift',
    text: `The database of “${datasource.name}” has changed since its exposure was saved, in ${driftCount} tables and columns.`,
    data: { datasource, driftCount },
  }
}

export function errorCondition(datasource: Named, error: string | null): Condition {
  return {
    key: `error ${datasource.id}`,
    event: 'datasourceError',
    text: `“${datasource.name}” cannot be reached. ${error ?? ''}`.trim(),
    data: { datasource, error },
  }
}

export function keyCondition(key: Named & { readonly email: string; readonly expiresAt: string }): Condition {
  return {
    key: `key ${key.id} ${key.expiresAt}`,
    event: 'keyExpiring',
    text: `The API key “${key.name}” of ${key.email} expires on ${key.expiresAt.slice(0, 10)}.`,
    data: { key },
  }
}

interface Message {
  readonly id: string
  readonly type: WebhookEvent | 'test'
  readonly at: string
  readonly team: Named
  readonly text: string
  readonly data: Readonly<Record<string, unknown>>
}

/** Each attempt sends the same body. */
export function bodyOf(format: WebhookFormat, message: Message): string {
  if (format === 'JSON') return JSON.stringify(message)
  return JSON.stringify({ text: `*${escaped(message.team.name)}*: ${escaped(message.text)}` })
}

/** Escapes the control characters of chat services (Slack: “Escaping text”), and removes marks of emphasis. */
function escaped(text: string): string {
  return text
    .replaceAll(/[*_~`]/g, ' ')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
}
