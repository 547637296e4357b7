// Changing how a datasource is connected. The rule that keeps a manager from sending a kept password elsewhere: where
// the address it goes to changes, or its protection weakens, every kept secret must come along. Pure but for its end.
import { z } from 'zod'
import type { ConnectionSettings, SettingsInput } from '../drivers/driver.ts'
import { invalidRequest } from '../errors.ts'
import { SSL_MODES } from './item.ts'

/** Written, never read (docs/session.md#connections). */
const SECRET_FIELDS = [
  'password',
  'uri',
  'serviceAccountKey',
  'tlsCa',
  'tlsCertificate',
  'tlsKey',
  'sshPrivateKey',
  'sshPassphrase',
] as const

const CONNECTION_FIELDS = [
  'connectionMode',
  'host',
  'port',
  'database',
  'username',
  'sslMode',
  'config',
  ...SECRET_FIELDS,
] as const

/** The connection part of a create or change; its fields are read by the driver. */
export type ConnectionInput = { readonly [F in (typeof CONNECTION_FIELDS)[number]]?: unknown }

/** Hours after which a database is looked at again; 0: never by itself (docs/exposure.md). */
const Hours = z.int().min(0).max(720)

/**
 * Takes `config.reintrospectHours`, which is ours and says nothing of the connection, out of what a driver reads: a
 * config of nothing else leaves the driver's alone. Throws INVALID_REQUEST where it is out of range.
 */
export function splitConfig<T extends ConnectionInput>(
  input: T,
): { readonly connection: T; readonly reintrospectHours: number | undefined } {
  const { config } = input
  if (typeof config !== 'object' || config === null || !('reintrospectHours' in config)) {
    return { connection: input, reintrospectHours: undefined }
  }
  const { reintrospectHours, ...rest } = config
  const hours = Hours.safeParse(reintrospectHours)
  if (!hours.success) throw invalidRequest(['config.reintrospectHours: must be a whole number from 0 to 720'])
  const own = Object.keys(rest).length === 0 ? {} : { config: rest }
  return { connection: { ...input, config: undefined, ...own }, reintrospectHours: hours.data }
}

/** What a driver reads of a new datasource. */
export function newSettings(input: ConnectionInput): SettingsInput {
  return { ...shownFields(input), secrets: secretsOf(input) }
}

/** False where a change leaves the connection alone. */
export function touchesConnection(change: ConnectionInput): boolean {
  return CONNECTION_FIELDS.some((field) => change[field] !== undefined)
}

/**
 * What a driver reads of a changed datasource: what came along over what was kept. In another mode nothing is kept; in
 * URI mode the address is the URI's alone.
 */
export function changedSettings(kept: ConnectionSettings, change: ConnectionInput): SettingsInput {
  if (change.connectionMode !== undefined && change.connectionMode !== kept.connectionMode) return newSettings(change)
  const secrets = { ...kept.secrets, ...secretsOf(change) }
  const base = { connectionMode: kept.connectionMode, sslMode: kept.sslMode ?? undefined, config: kept.config }
  const address = {
    host: kept.host ?? undefined,
    port: kept.port ?? undefined,
    database: kept.database,
    username: kept.username ?? undefined,
  }
  const before = kept.connectionMode === 'URI' ? base : { ...base, ...address }
  return { ...before, ...shownFields(change), secrets }
}

/**
 * Throws INVALID_REQUEST that names each field of the change which the kept URI overrides: to accept it would change
 * nothing. A field that repeats what holds already is no change.
 */
export function requireEffect(next: ConnectionSettings, change: ConnectionInput): void {
  const uri = next.secrets['uri']
  if (next.connectionMode !== 'URI' || uri === undefined || change.uri !== undefined) return
  const lost: string[] = (['host', 'port', 'database', 'username', 'sslMode'] as const).filter(
    (field) => change[field] !== undefined && change[field] !== next[field],
  )
  if (change.password !== undefined && HOLDS_PASSWORD.test(uri)) lost.push('password')
  if (lost.length > 0) throw invalidRequest(lost.map((field) => `${field}: ${READ_FROM_URI}`))
}

const HOLDS_PASSWORD = /^[^/]*\/\/[^/?#@]*:[^/?#]*@/
const READ_FROM_URI =
  'this datasource takes it from its uri; send a new uri, or connectionMode DIRECT with host, port, database, username and password'

/** Throws INVALID_REQUEST that names every kept secret which must come along with this change and did not. */
export function requireSecrets(kept: ConnectionSettings, next: ConnectionSettings, change: ConnectionInput): void {
  const why = dangerOf(kept, next)
  if (why === null) return
  const came = secretsOf(change)
  const missing = Object.keys(kept.secrets).filter((field) => field in next.secrets && !(field in came))
  if (missing.length > 0) {
    throw invalidRequest(missing.map((field) => `${field}: must come along, because ${why}`))
  }
}

/** True where a driver would connect otherwise than before. */
export function differs(kept: ConnectionSettings, next: ConnectionSettings): boolean {
  return canonical(kept) !== canonical(next)
}

/** Why kept secrets would go elsewhere, or less protected, than they were given for; null where they would not. */
function dangerOf(kept: ConnectionSettings, next: ConnectionSettings): string | null {
  if (kept.connectionMode !== next.connectionMode) return 'the connection mode changes'
  const moved = (['host', 'port', 'database', 'username'] as const).find((field) => kept[field] !== next[field])
  if (moved !== undefined) return `${moved} changes`
  if (kept.secrets['uri'] !== next.secrets['uri']) return 'uri changes'
  for (const [field, name] of [
    ['ssh', 'ssh'],
    ['apiEndpoint', 'the endpoint'],
    ['emulator', 'the endpoint'],
  ] as const) {
    if (canonical(kept.config[field]) !== canonical(next.config[field])) return `${name} changes`
  }
  return strength(next.sslMode) < strength(kept.sslMode) ? 'sslMode weakens' : null
}

/** A mode we do not know is weaker than any we do. */
function strength(mode: string | null): number {
  return SSL_MODES.findIndex((known) => known === mode)
}

function shownFields(input: ConnectionInput): Omit<SettingsInput, 'secrets'> {
  const { connectionMode, host, port, database, username, sslMode, config } = input
  const all = { connectionMode, host, port, database, username, sslMode, config }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

function secretsOf(input: ConnectionInput): Readonly<Record<string, string>> {
  const came = SECRET_FIELDS.flatMap((field) => (input[field] === undefined ? [] : [[field, input[field]] as const]))
  return Secrets.parse(Object.fromEntries(came))
}

const Secrets = z.record(z.string(), z.string())

/** The same text for the same value, whatever the order of its fields. */
function canonical(value: unknown): string {
  return (
    JSON.stringify(value, (_key, inner: unknown) =>
      typeof inner === 'object' && inner !== null && !Array.isArray(inner)
        ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
        : inner,
    ) ?? 'null'
  )
}
