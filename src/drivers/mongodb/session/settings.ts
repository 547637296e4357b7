// Validates the connection fields of a MongoDB datasource. An error names the field and never repeats its value.
import { z } from 'zod'
import { invalidRequest } from '../../../errors.ts'
import { hostField, nameField, portField, SslMode, wrongHost, wrongSecrets } from '../../connection-fields.ts'
import type { ConnectionSettings, SettingsInput } from '../../driver.ts'
import { SSH_SECRETS, sshTargetOf, type SshTarget } from '../../ssh-settings.ts'
import { readUri, type Host, type UriParts } from './uri.ts'

const SECRETS = ['password', 'uri', 'tlsCa', 'tlsCertificate', 'tlsKey'] as const
const READ_PREFERENCES = ['primary', 'primaryPreferred', 'secondary', 'secondaryPreferred', 'nearest'] as const
/** Limits a user name, an authSource and the name of a replica set. */
const NAME_MAX = 256

const Config = z.strictObject({
  authSource: nameField(NAME_MAX).optional(),
  authMechanism: z.enum(['SCRAM', 'X509'], { error: 'must be SCRAM or X509' }).optional(),
  replicaSet: nameField(NAME_MAX).optional(),
  readPreference: z.enum(READ_PREFERENCES, { error: `must be ${READ_PREFERENCES.join(', ')}` }).optional(),
  /** ssh-settings.ts reads this field. */
  ssh: z.unknown().optional(),
})
type Config = z.infer<typeof Config>

/** The servers and the login, computed from the settings for each connection. `password` and `tls` are secret. */
export interface Target {
  readonly hosts: readonly Host[]
  readonly srv: boolean
  readonly database: string
  /** Null without authentication. Also null for X.509, because the certificate contains the user name. */
  readonly username: string | null
  readonly password: string | null
  readonly mechanism: 'SCRAM' | 'SCRAM-SHA-1' | 'SCRAM-SHA-256' | 'X509' | null
  /**
   * The database of the user. If null, it is the authSource in the TXT record of the SRV host, or else the datasource's
   * database.
   */
  readonly authSource: string | null
  readonly replicaSet: string | null
  readonly readPreference: (typeof READ_PREFERENCES)[number]
  /** True to connect only to this server, and not to the other members of its replica set. */
  readonly direct: boolean
  readonly srvServiceName: string | null
  readonly srvMaxHosts: number
  readonly sslMode: SslMode
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string }
  readonly ssh: SshTarget | null
}

/** Throws AppError INVALID_REQUEST with details. */
export function readSettings(input: SettingsInput): ConnectionSettings {
  return read(input).settings
}

/** `settings` come from readSettings(). Throws AppError INVALID_REQUEST for other settings. */
export function targetOf(settings: ConnectionSettings): Target {
  return read(settings).target
}

interface Read {
  readonly settings: ConnectionSettings
  readonly target: Target
}

function read(input: SettingsInput): Read {
  const isTunnel = input.connectionMode === 'SSH_TUNNEL'
  const wrong: string[] = wrongSecrets('MONGODB', isTunnel ? [...SECRETS, ...SSH_SECRETS] : SECRETS, input.secrets)
  const config = configOf(input.config, wrong)
  if (input.connectionMode === 'URI') return finish(input, wrong, config, uriParts(input, wrong))
  if (input.connectionMode === 'DIRECT') return finish(input, wrong, config, directParts(input, wrong))
  if (isTunnel) {
    // The other members of the replica set are not behind this tunnel.
    if (config.replicaSet !== undefined) wrong.push('config.replicaSet: is not available through an SSH tunnel')
    return finish(input, wrong, config, directParts(input, wrong))
  }
  throw invalidRequest([...wrong, 'connectionMode: must be DIRECT, URI or SSH_TUNNEL'])
}

function finish(input: SettingsInput, wrong: string[], config: Config, parts: UriParts | null): Read {
  if (parts === null) throw invalidRequest(wrong)
  const sslMode = SslMode.safeParse(sslModeOf(input, parts))
  if (!sslMode.success) wrong.push('sslMode: must be disable, require, verify-ca or verify-full')
  wrong.push(...wrongDatabase(parts.database))
  const asked = parametersOf(parts, wrong)
  const merged = { ...config, ...asked.config }
  const isTunnel = input.connectionMode === 'SSH_TUNNEL'
  const ssh = isTunnel ? sshTargetOf(merged.ssh, input.secrets, wrong) : null
  if (!isTunnel && merged.ssh !== undefined) wrong.push('config.ssh: needs connectionMode SSH_TUNNEL')
  const mechanism = mechanismOf(asked.mechanism ?? merged.authMechanism ?? null, parts)
  wrong.push(...wrongLogin(input, mechanism, parts, sslMode.data))
  if (!sslMode.success || wrong.length > 0) throw invalidRequest(wrong)
  const uri = input.connectionMode === 'URI'
  const username = mechanism === 'X509' ? null : parts.username
  const [first] = parts.hosts
  const secrets = Object.fromEntries(
    [...SECRETS, ...SSH_SECRETS]
      .filter((each) => each !== 'uri' || uri)
      .flatMap((each) => {
        const secret = input.secrets[each]
        return secret === undefined ? [] : [[each, secret]]
      }),
  )
  const { tlsCa: ca, tlsCertificate: cert, tlsKey: key } = secrets
  return {
    settings: {
      connectionMode: String(input.connectionMode),
      host: first?.host ?? null,
      port: first?.port ?? null,
      database: parts.database,
      username,
      sslMode: sslMode.data,
      config: merged,
      secrets,
    },
    target: {
      ssh,
      hosts: parts.hosts,
      srv: parts.srv,
      database: parts.database,
      username,
      password: parts.password ?? secrets['password'] ?? null,
      mechanism,
      authSource: merged.authSource ?? (uri ? (parts.srv ? null : parts.database) : 'admin'),
      replicaSet: merged.replicaSet ?? null,
      readPreference: merged.readPreference ?? 'primary',
      direct: asked.direct ?? (!uri && merged.replicaSet === undefined),
      srvServiceName: parts.parameters.get('srvservicename') ?? null,
      srvMaxHosts: asked.srvMaxHosts,
      sslMode: sslMode.data,
      tls: {
        ...(ca === undefined ? {} : { ca }),
        ...(cert === undefined ? {} : { cert }),
        ...(key === undefined ? {} : { key }),
      },
    },
  }
}

function uriParts(input: SettingsInput, wrong: string[]): UriParts | null {
  const uri = input.secrets['uri']
  if (uri === undefined) {
    wrong.push('uri: is required with connectionMode URI')
    return null
  }
  const parts = readUri(uri)
  if ('hosts' in parts) return parts
  wrong.push(...parts)
  return null
}

const Direct = z.object({
  host: hostField,
  port: portField(27_017),
  database: nameField(63),
  // X.509, and a server without authentication, need no user name.
  username: nameField(NAME_MAX)
    .nullish()
    .transform((username) => username ?? null),
})

function directParts(input: SettingsInput, wrong: string[]): UriParts | null {
  const direct = Direct.safeParse(input)
  if (!direct.success) {
    wrong.push(...direct.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`))
    return null
  }
  const { host, port, database, username } = direct.data
  wrong.push(...wrongHost(host))
  if (/\.sock$/i.test(host)) wrong.push('host: a socket is not allowed')
  const password = input.secrets['password'] ?? null
  return { hosts: [{ host, port }], srv: false, database, username, password, sslMode: null, parameters: new Map() }
}

/** The URI takes precedence. If it requires TLS, the field sslMode cannot turn TLS off. */
function sslModeOf(input: SettingsInput, parts: UriParts): unknown {
  if (parts.sslMode !== null) return parts.sslMode
  const given = input.sslMode ?? 'verify-full'
  const wantsTls = (parts.parameters.get('tls') ?? parts.parameters.get('ssl')) === 'true'
  return wantsTls && given === 'disable' ? 'verify-full' : given
}

function configOf(config: unknown, wrong: string[]): Config {
  const parsed = Config.safeParse(config ?? {})
  if (parsed.success) return parsed.data
  for (const issue of parsed.error.issues) {
    if (issue.code === 'unrecognized_keys')
      wrong.push(...issue.keys.map((key) => `config.${key.slice(0, 60)}: is not a setting of MONGODB`))
    else
      wrong.push(
        `${['config', ...issue.path].join('.')}: ${issue.path.length === 0 ? 'must be an object' : issue.message}`,
      )
  }
  return {}
}

interface Asked {
  readonly config: Config
  readonly mechanism: Target['mechanism']
  readonly direct: boolean | null
  readonly srvMaxHosts: number
}

const MECHANISMS: Readonly<Record<string, Target['mechanism']>> = {
  DEFAULT: 'SCRAM',
  'SCRAM-SHA-1': 'SCRAM-SHA-1',
  'SCRAM-SHA-256': 'SCRAM-SHA-256',
  'MONGODB-X509': 'X509',
}

/** Returns the parameters of the URI that are also fields of config. */
function parametersOf(parts: UriParts, wrong: string[]): Asked {
  const at = (key: string): string | undefined => parts.parameters.get(key)
  const [mechanism, direct] = [at('authmechanism'), at('directconnection')]
  const known = mechanism === undefined ? null : (MECHANISMS[mechanism.toUpperCase()] ?? null)
  if (mechanism !== undefined && known === null)
    wrong.push('uri: authMechanism must be SCRAM-SHA-1, SCRAM-SHA-256 or MONGODB-X509')
  const readPreference = READ_PREFERENCES.find((each) => each.toLowerCase() === at('readpreference')?.toLowerCase())
  if (at('readpreference') !== undefined && readPreference === undefined)
    wrong.push(`uri: readPreference must be ${READ_PREFERENCES.join(', ')}`)
  if (direct === 'true' && (parts.hosts.length > 1 || parts.srv))
    wrong.push('uri: directConnection accepts one host only')
  const [replicaSet, authSource] = [at('replicaset'), at('authsource')]
  const srvMaxHosts = Number(at('srvmaxhosts') ?? 0)
  if (!Number.isSafeInteger(srvMaxHosts) || srvMaxHosts < 0) wrong.push('uri: srvMaxHosts must be a whole number')
  for (const key of ['srvmaxhosts', 'srvservicename'])
    if (!parts.srv && at(key) !== undefined) wrong.push('uri: srvMaxHosts and srvServiceName require mongodb+srv')
  if (srvMaxHosts > 0 && replicaSet !== undefined) wrong.push('uri: srvMaxHosts and replicaSet cannot be combined')
  return {
    config: {
      ...(authSource === undefined ? {} : { authSource }),
      ...(known === null ? {} : { authMechanism: known === 'X509' ? ('X509' as const) : ('SCRAM' as const) }),
      ...(replicaSet === undefined ? {} : { replicaSet }),
      ...(readPreference === undefined ? {} : { readPreference }),
    },
    mechanism: known,
    direct: direct === undefined ? null : direct === 'true',
    srvMaxHosts,
  }
}

function mechanismOf(asked: Target['mechanism'], parts: UriParts): Target['mechanism'] {
  if (asked === 'X509') return 'X509'
  return parts.username === null ? null : (asked ?? 'SCRAM')
}

function wrongLogin(
  input: SettingsInput,
  mechanism: Target['mechanism'],
  parts: UriParts,
  sslMode: SslMode | undefined,
): string[] {
  if (mechanism === 'X509') {
    const wrong = input.secrets['tlsCertificate'] === undefined ? ['tlsCertificate: is required with X509'] : []
    return sslMode === 'disable' ? [...wrong, 'sslMode: X509 requires TLS'] : wrong
  }
  const password = parts.password ?? input.secrets['password'] ?? null
  if (parts.username === null && password !== null) return ['username: is required with a password']
  return []
}

/** Follows MongoDB's rules for names. MongoDB's own databases are never served. */
function wrongDatabase(database: string): string[] {
  if (/[/\\. "$\0]/.test(database) || database.length > 63) return ['database: is not a valid MongoDB database name']
  if (['admin', 'config', 'local'].includes(database))
    return [`database: ${database} is an internal database of MongoDB`]
  return []
}
