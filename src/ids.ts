// In the API, ids are plain strings. In the code, each kind of id has its own type, so that a team's id cannot be
// passed for a datasource's id.
import { randomUUID } from 'node:crypto'

declare const kind: unique symbol
type Id<K extends string> = string & { readonly [kind]: K }

export type AccountId = Id<'account'>
export type ApiKeyId = Id<'api-key'>
export type AuditId = Id<'audit'>
export type DatasourceId = Id<'datasource'>
export type DeliveryId = Id<'delivery'>
export type ExposureRequestId = Id<'exposure-request'>
export type GrantId = Id<'grant'>
export type InvitationId = Id<'invitation'>
export type JobId = Id<'job'>
export type PasskeyId = Id<'passkey'>
export type SessionId = Id<'session'>
export type TeamId = Id<'team'>
export type WebhookId = Id<'webhook'>

type AnyId =
  | AccountId
  | ApiKeyId
  | AuditId
  | DatasourceId
  | DeliveryId
  | ExposureRequestId
  | GrantId
  | InvitationId
  | JobId
  | PasskeyId
  | SessionId
  | TeamId
  | WebhookId

export function newId<T extends AnyId>(): T {
  return randomUUID() as string as T
}

/** Does not check whether the id exists. */
export function asId<T extends AnyId>(text: string): T {
  return text as T
}
