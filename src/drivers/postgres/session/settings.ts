// Reads the connection fields of a PostgreSQL datasource. Errors name the field and never repeat its value.
import { z } from 'zod'
import { invalidRequest } from '../../../errors.ts'
import { hostField, nameField, portField, SslMode, wrongHost, wrongSecrets } from '../../connection-fields.ts'
import type { ConnectionSettings, SettingsInput } from '../../driver.ts'
import { readUri, type UriParts } from './uri.ts'

const SECRETS = ['password', 'uri', 'tlsCa', 'tlsCertificate', 'tlsKey'] as const

/** The server and the user of a login, read from the settings at each connect. `password` and `tls` are secret. */
export interface Target {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly username: string
  readonly password: string | null
  readonly sslMode: SslMode
  readonly channelBinding: boolean
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string }
}

/** Throws AppError INVALID_REQUEST with details. */
export function readSettings(input: SettingsInput): ConnectionSettings {
  const wrong: string[] = [...wrongSecrets('POSTGRES', SECRETS, input.secrets), ...wrongConfig(input.config)]
  if (input.connectionMode === 'URI') return finish(input, wrong, uriParts(input, wrong))
  if (input.connectionMode === 'DIRECT') return finish(input, wrong, directParts(input, wrong))
  wrong.push(
    input.connectionMode === 'SSH_TUNNEL'
      ? 'connectionMode: SSH_TUNNEL is not built yet'
      : 'connectionMode: must be DIRECT or URI',
  )
  throw invalidRequest(wrong)
}

type Parts = Pick<UriParts, 'host' | 'port' | 'database' | 'username' | 'sslMode'>

function finish(input: SettingsInput, wrong: string[], parts: Parts | null): ConnectionSettings {
  const given = input.sslMode ?? null
  const sslMode = SslMode.safeParse(parts?.sslMode ?? given ?? 'verify-full')
  if (!sslMode.success) wrong.push('sslMode: must be disable, require, verify-ca or verify-full')
  if (parts !== null) wrong.push(...wrongHost(parts.host))
  if (parts === null || !sslMode.success || wrong.length > 0) throw invalidRequest(wrong)
  const { host, port, database, username } = parts
  const secrets = Object.fromEntries(
    SECRETS.filter((name) => !(name === 'uri' && input.connectionMode === 'DIRECT')).flatMap((name) => {
      const secret = input.secrets[name]
      return secret === undefined ? [] : [[name, secret]]
    }),
  )
  const connectionMode = input.connectionMode === 'URI' ? 'URI' : 'DIRECT'
  return { connectionMode, host, port, database, username, sslMode: sslMode.data, config: {}, secrets }
}

function uriParts(input: SettingsInput, wrong: string[]): Parts | null {
  const uri = input.secrets['uri']
  if (uri === undefined) {
    wrong.push('uri: is needed with connectionMode URI')
    return null
  }
  const parts = readUri(uri)
  if (!('host' in parts)) {
    wrong.push(...parts)
    return null
  }
  // With a URI, `host`, `port` and the like are read from the URI. `sslMode` beside it applies if the URI sets none.
  const fits = z.string().min(1).max(63)
  if (!fits.safeParse(parts.database).success) wrong.push('uri: the database name is longer than 63 characters')
  if (!fits.safeParse(parts.username).success) wrong.push('uri: the user name is longer than 63 characters')
  if (/\p{Cc}/u.test(parts.database + parts.username)) wrong.push('uri: holds control characters')
  return parts
}

const Direct = z.object({
  host: hostField,
  port: portField(5432),
  database: nameField(63),
  username: nameField(63),
})

function directParts(input: SettingsInput, wrong: string[]): Parts | null {
  const read = Direct.safeParse(input)
  if (read.success) return { ...read.data, sslMode: null }
  wrong.push(...read.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`))
  return null
}

function wrongConfig(config: unknown): string[] {
  if (config === undefined || config === null) return []
  const read = z.record(z.string(), z.unknown()).safeParse(config)
  if (!read.success) return ['config: must be an object']
  return Object.keys(read.data).map((key) => `config.${key.slice(0, 60)}: is not a setting of POSTGRES`)
}

/** The target of settings that readSettings() returned. Throws AppError INVALID_REQUEST for any other settings. */
export function targetOf(settings: ConnectionSettings): Target {
  const { host, port, database, username, sslMode, secrets } = readSettings(settings)
  const uri = secrets['uri'] === undefined ? null : readUri(secrets['uri'])
  const parts = uri !== null && 'host' in uri ? uri : null
  const { tlsCa: ca, tlsCertificate: cert, tlsKey: key } = secrets
  return {
    host: host ?? '',
    port: port ?? 5432,
    database,
    username: username ?? '',
    password: parts?.password ?? secrets['password'] ?? null,
    sslMode: SslMode.parse(sslMode),
    channelBinding: parts?.channelBinding ?? false,
    tls: {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    },
  }
}
