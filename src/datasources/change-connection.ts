// Changes a datasource's connection. A manager could change the host to send a stored password to a server of their
// own. So if the server, the database or the user changes, or if TLS becomes weaker, every stored secret must be sent
// again.
import { z } from 'zod'
import type { ConnectionSettings, SettingsInput } from '../drivers/driver.ts'
import { invalidRequest } from '../errors.ts'
import { SSL_MODES } from './datasource-item.ts'

/** Fields that are never returned (docs/session.md#connections). */
const SECRET_FIELDS = [
  'password',
  'uri',
  'serviceAccountKey',
  'tlsCa',
  'tlsCertificate',
  'tlsKey',
  'sshPrivateKey',
  'sshPassphrase',
  'sshPassword',
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

export type ConnectionInput = { readonly [F in (typeof CONNECTION_FIELDS)[number]]?: unknown }

/** The hours between automatic introspections. 0 means never (docs/exposure.md). */
const Hours = z.int().min(0).max(720)

/** If `config` has only `reintrospectHours`, the driver's config stays unchanged. Throws INVALID_REQUEST. */
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

export function newSettings(input: ConnectionInput): SettingsInput {
  return { ...shownFields(input), secrets: secretsOf(input) }
}

export function touchesConnection(change: ConnectionInput): boolean {
  return CONNECTION_FIELDS.some((field) => change[field] !== undefined)
}

/** Omitted fields keep their stored values, unless the connection mode changes. A URI replaces the whole address. */
export function changedSettings(stored: ConnectionSettings, change: ConnectionInput): SettingsInput {
  if (change.connectionMode !== undefined && change.connectionMode !== stored.connectionMode) return newSettings(change)
  const secrets = { ...stored.secrets, ...secretsOf(change) }
  const base = { connectionMode: stored.connectionMode, sslMode: stored.sslMode ?? undefined, config: stored.config }
  const address = {
    host: stored.host ?? undefined,
    port: stored.port ?? undefined,
    database: stored.database,
    username: stored.username ?? undefined,
  }
  const before = stored.connectionMode === 'URI' ? base : { ...base, ...address }
  return { ...before, ...shownFields(change), secrets }
}

/**
 * Throws INVALID_REQUEST with each field that would have no effect, such as another `host` without a new URI in URI
 * mode. A field with its current value is accepted.
 */
export function requireEffect(next: ConnectionSettings, change: ConnectionInput): void {
  const uri = next.secrets['uri']
  if (next.connectionMode !== 'URI' || uri === undefined || change.uri !== undefined) return
  const ignored: string[] = (['host', 'port', 'database', 'username', 'sslMode'] as const).filter(
    (field) => change[field] !== undefined && change[field] !== next[field],
  )
  if (change.password !== undefined && HOLDS_PASSWORD.test(uri)) ignored.push('password')
  if (ignored.length > 0) throw invalidRequest(ignored.map((field) => `${field}: ${READ_FROM_URI}`))
}

function holdsPassword(uri: string, password: string): boolean {
  return uri.includes(`:${password}@`) || uri.includes(`:${encodeURIComponent(password)}@`)
}

const HOLDS_PASSWORD = /^[^/]*\/\/[^/?#@]*:[^/?#]*@/
const READ_FROM_URI =
  'the uri of this datasource sets this field; send a new uri, or connectionMode DIRECT with host, port, database, username and password'

export type Parsed = Pick<ConnectionSettings, 'host' | 'port' | 'database' | 'username' | 'sslMode' | 'config'>

export interface Contradiction {
  readonly field: string
  /** Null for a password, which is never returned. */
  readonly inUri: string | number | null
  readonly given: string | number | null
}

/** Returns the values in the URI, and the fields of the same request that contradict them. */
export function comparedWithUri(
  next: ConnectionSettings,
  input: ConnectionInput,
): { readonly parsed: Parsed | null; readonly contradictions: readonly Contradiction[] } {
  const uri = next.secrets['uri']
  if (next.connectionMode !== 'URI' || uri === undefined) return { parsed: null, contradictions: [] }
  const { host, port, database, username, sslMode, config } = next
  const contradictions: Contradiction[] = []
  for (const field of ['host', 'port', 'database', 'username', 'sslMode'] as const) {
    const [inUri, given] = [next[field], input[field]]
    if (given === inUri || (typeof given !== 'string' && typeof given !== 'number')) continue
    contradictions.push({ field, inUri, given })
  }
  if (typeof input.password === 'string' && HOLDS_PASSWORD.test(uri) && !holdsPassword(uri, input.password))
    contradictions.push({ field: 'password', inUri: null, given: null })
  return { parsed: { host, port, database, username, sslMode, config }, contradictions }
}

export function requireSecrets(stored: ConnectionSettings, next: ConnectionSettings, change: ConnectionInput): void {
  const why = dangerOf(stored, next)
  if (why === null) return
  const sent = secretsOf(change)
  const missing = Object.keys(stored.secrets).filter((field) => field in next.secrets && !(field in sent))
  if (missing.length > 0) {
    throw invalidRequest(missing.map((field) => `${field}: must be sent again, because ${why}`))
  }
}

export function differs(stored: ConnectionSettings, next: ConnectionSettings): boolean {
  return canonical(stored) !== canonical(next)
}

/** Returns why stored secrets would be sent to another place or with weaker protection. Null if they would not. */
function dangerOf(stored: ConnectionSettings, next: ConnectionSettings): string | null {
  if (stored.connectionMode !== next.connectionMode) return 'the connection mode changes'
  const moved = (['host', 'port', 'database', 'username'] as const).find((field) => stored[field] !== next[field])
  if (moved !== undefined) return `${moved} changes`
  if (stored.secrets['uri'] !== next.secrets['uri']) return 'uri changes'
  for (const [field, name] of [
    ['ssh', 'ssh'],
    ['apiEndpoint', 'the endpoint'],
    ['emulator', 'the endpoint'],
  ] as const) {
    if (canonical(stored.config[field]) !== canonical(next.config[field])) return `${name} changes`
  }
  return strength(next.sslMode) < strength(stored.sslMode) ? 'sslMode weakens' : null
}

/** An unknown mode is weaker than all known modes. */
function strength(mode: string | null): number {
  return SSL_MODES.findIndex((known) => known === mode)
}

function shownFields(input: ConnectionInput): Omit<SettingsInput, 'secrets'> {
  const { connectionMode, host, port, database, username, sslMode, config } = input
  const all = { connectionMode, host, port, database, username, sslMode, config }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

function secretsOf(input: ConnectionInput): Readonly<Record<string, string>> {
  const sent = SECRET_FIELDS.flatMap((field) => (input[field] === undefined ? [] : [[field, input[field]] as const]))
  return Secrets.parse(Object.fromEntries(sent))
}

const Secrets = z.record(z.string(), z.string())

/** Ignores the order of fields. */
function canonical(value: unknown): string {
  return (
    JSON.stringify(value, (_key, inner: unknown) =>
      typeof inner === 'object' && inner !== null && !Array.isArray(inner)
        ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
        : inner,
    ) ?? 'null'
  )
}
