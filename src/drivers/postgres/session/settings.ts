// Reads the connection fields of a PostgreSQL datasource. Errors name a field and never repeat its value.
import { z } from 'zod'
import { invalidRequest } from '../../../errors.ts'
import { hostField, nameField, portField, SslMode, wrongHost, wrongSecrets } from '../../connection-fields.ts'
import type { ConnectionSettings, SettingsInput } from '../../driver.ts'
import { SSH_SECRETS, sshTargetOf, type SshTarget } from '../../ssh-settings.ts'
import { readUri, type UriParts } from './uri.ts'

const SECRETS = ['password', 'uri', 'tlsCa', 'tlsCertificate', 'tlsKey'] as const

/** The server and the user of a login. `password` and `tls` are secret. */
export interface Target {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly username: string
  readonly password: string | null
  readonly sslMode: SslMode
  readonly channelBinding: boolean
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string }
  /** Null if there is no tunnel. */
  readonly ssh: SshTarget | null
  /** The Unix socket of the tunnel, if there is one. */
  readonly path?: string | null
}

/** Validates the fields. Throws AppError INVALID_REQUEST with details. */
export function readSettings(input: SettingsInput): ConnectionSettings {
  const isTunnel = input.connectionMode === 'SSH_TUNNEL'
  const known = isTunnel ? [...SECRETS, ...SSH_SECRETS] : SECRETS
  const wrong: string[] = [...wrongSecrets('POSTGRES', known, input.secrets), ...wrongConfig(input.config, isTunnel)]
  if (input.connectionMode === 'URI') return finish(input, wrong, uriParts(input, wrong))
  if (input.connectionMode === 'DIRECT') return finish(input, wrong, directParts(input, wrong))
  if (isTunnel) {
    sshTargetOf(sshOf(input.config), input.secrets, wrong)
    return finish(input, wrong, directParts(input, wrong))
  }
  throw invalidRequest([...wrong, 'connectionMode: must be DIRECT, URI or SSH_TUNNEL'])
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
    [...SECRETS, ...SSH_SECRETS]
      .filter((name) => name !== 'uri' || input.connectionMode === 'URI')
      .flatMap((name) => {
        const secret = input.secrets[name]
        return secret === undefined ? [] : [[name, secret]]
      }),
  )
  const connectionMode = String(input.connectionMode)
  const config = connectionMode === 'SSH_TUNNEL' ? { ssh: sshOf(input.config) } : {}
  return { connectionMode, host, port, database, username, sslMode: sslMode.data, config, secrets }
}

function uriParts(input: SettingsInput, wrong: string[]): Parts | null {
  const uri = input.secrets['uri']
  if (uri === undefined) {
    wrong.push('uri: is required with connectionMode URI')
    return null
  }
  const parts = readUri(uri)
  if (!('host' in parts)) {
    wrong.push(...parts)
    return null
  }
  // With a URI, host, port and others come from the URI. The field `sslMode` applies only if the URI does not set it.
  const fits = z.string().min(1).max(63)
  if (!fits.safeParse(parts.database).success) wrong.push('uri: the database name is longer than 63 characters')
  if (!fits.safeParse(parts.username).success) wrong.push('uri: the user name is longer than 63 characters')
  if (/\p{Cc}/u.test(parts.database + parts.username)) wrong.push('uri: contains control characters')
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

function sshOf(config: unknown): unknown {
  return typeof config === 'object' && config !== null && 'ssh' in config ? config.ssh : undefined
}

function wrongConfig(config: unknown, isTunnel: boolean): string[] {
  if (config === undefined || config === null) return []
  const read = z.record(z.string(), z.unknown()).safeParse(config)
  if (!read.success) return ['config: must be an object']
  const unknown = Object.keys(read.data).filter((key) => !(isTunnel && key === 'ssh'))
  return unknown.map((key) => `config.${key.slice(0, 60)}: is not a setting of POSTGRES`)
}

/** Returns the server and user. Throws AppError INVALID_REQUEST for settings that readSettings() would refuse. */
export function targetOf(settings: ConnectionSettings): Target {
  const { host, port, database, username, sslMode, config, secrets } = readSettings(settings)
  const uri = secrets['uri'] === undefined ? null : readUri(secrets['uri'])
  const parts = uri !== null && 'host' in uri ? uri : null
  const { tlsCa: ca, tlsCertificate: cert, tlsKey: key } = secrets
  return {
    ssh: settings.connectionMode === 'SSH_TUNNEL' ? sshTargetOf(config['ssh'], secrets, []) : null,
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
