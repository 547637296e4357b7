// Every kind of id, in one append-only list. On the wire they are plain strings; inside, a team's id is never taken
// for a datasource's. Made in two places only: route parameters and new rows.
import { randomUUID } from 'node:crypto'

declare const kind: unique symbol
type Id<K extends string> = string & { readonly [kind]: K }

export type AccountId = Id<'account'>
export type ApiKeyId = Id<'api-key'>
export type AuditId = Id<'audit'>
export type DatasourceId = Id<'datasource'>
export type InvitationId = Id<'invitation'>
export type JobId = Id<'job'>
export type SessionId = Id<'session'>
export type TeamId = Id<'team'>

type AnyId = AccountId | ApiKeyId | AuditId | DatasourceId | InvitationId | JobId | SessionId | TeamId

/** A new random id (UUID v4). */
export function newId<T extends AnyId>(): T {
  return randomUUID() as string as T
}

/** Takes a text for the id it claims to be, for look-up; it proves nothing about existence. */
export function asId<T extends AnyId>(text: string): T {
  return text as T
}
