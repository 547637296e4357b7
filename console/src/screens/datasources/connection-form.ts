// The fields of a connection as a person fills them in, and the request body made from them.
import type { Input } from '../../api/types.ts'
import { KINDS, type Kind } from './kind-names.ts'

type Trial = Input<'tryConnection'>['body']
export type SslMode = NonNullable<Trial['sslMode']>

export interface Fields {
  readonly type: Kind
  /**
   * A connection string. readString() moves its password to `password`. A MongoDB string is sent. A PostgreSQL string
   * only fills the other fields.
   */
  readonly uri: string
  readonly host: string
  readonly port: string
  readonly database: string
  readonly username: string
  readonly password: string
  readonly sslMode: SslMode
  /**
   * The certificate, in PEM, of the authority that signed the server's certificate. If empty, the service trusts the
   * authorities that its Node trusts.
   */
  readonly tlsCa: string
  /** MongoDB: the database that contains the login. */
  readonly authSource: string
  /** BigQuery: `machine` is the identity of the service's own machine, if the operator allows it. */
  readonly identity: 'key' | 'machine'
  readonly serviceAccountKey: string
  readonly location: string
  /** Names separated by commas. Empty for all datasets of the project. */
  readonly datasets: string
  /** An address other than Google's, if the operator allows it. */
  readonly apiEndpoint: string
  /** The stored settings. Settings without a field here are sent unchanged. */
  readonly config: Readonly<Record<string, unknown>>
}

export type TextName = Exclude<keyof Fields, 'type' | 'sslMode' | 'identity' | 'config'>

export const NO_FIELDS: Fields = {
  type: 'POSTGRES',
  uri: '',
  host: '',
  port: '',
  database: '',
  username: '',
  password: '',
  sslMode: 'verify-full',
  tlsCa: '',
  authSource: '',
  identity: 'key',
  serviceAccountKey: '',
  location: '',
  datasets: '',
  apiEndpoint: '',
  config: {},
}

/** Returns the default TLS mode. A server on this machine seldom has a certificate. Any other connection needs TLS. */
const sslModeFor = (host: string): SslMode =>
  /^(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)$/.test(host.trim()) ? 'disable' : 'verify-full'

/** Sets another host. If the person has not chosen a TLS mode, the mode follows the host. */
export const withHost = (fields: Fields, host: string): Fields => ({
  ...fields,
  host,
  sslMode: fields.sslMode === sslModeFor(fields.host) ? sslModeFor(host) : fields.sslMode,
})

/** Sets another kind of database. Keeps the input, except a connection string of another kind. */
export function withKind(fields: Fields, type: Kind): Fields {
  const kept = readString(fields.uri).fields.type === type
  return { ...fields, type, uri: kept ? fields.uri : '' }
}

export const TLS = [
  { value: 'verify-full', label: 'Verify the certificate and the name' },
  { value: 'verify-ca', label: 'Verify the certificate' },
  { value: 'require', label: 'Encrypt, verify nothing' },
  { value: 'disable', label: 'No encryption' },
] as const satisfies readonly { readonly value: SslMode; readonly label: string }[]

const DEFAULT_PORT: Readonly<Record<Kind, number | null>> = { POSTGRES: 5432, MONGODB: 27_017, BIGQUERY: null }

export const defaultPort = (type: Kind) => DEFAULT_PORT[type]

/** True if the string is sent whole. A MongoDB string may contain more than the fields can hold. */
export const isSentWhole = ({ type, uri }: Fields) => type === 'MONGODB' && uri.trim() !== ''

/** True if a MongoDB string sets TLS itself. */
export const saysTls = (uri: string) => /^mongodb\+srv:/i.test(uri.trim()) || /[?&](?:tls|ssl)=/i.test(uri)

/** Returns the request body of a check, a creation or a change. */
export function bodyOf(fields: Fields): Trial {
  const { type, uri, host, port, database, username, password, sslMode } = fields
  if (type === 'BIGQUERY') return bigQueryBody(fields)
  const authority = fields.tlsCa.trim() === '' ? {} : { tlsCa: fields.tlsCa }
  if (isSentWhole(fields)) {
    const tls = saysTls(uri) ? {} : { sslMode }
    return { type, connectionMode: 'URI', uri: withPassword(uri.trim(), password), ...tls, ...authority }
  }
  const at = Number(port.trim() === '' ? DEFAULT_PORT[type] : port)
  const login = username.trim() === '' ? {} : { username: username.trim() }
  const secret = password === '' ? {} : { password }
  const config = type === 'MONGODB' ? { config: configOf(fields.config, { authSource: fields.authSource }) } : {}
  return {
    type,
    connectionMode: 'DIRECT',
    host: host.trim(),
    port: at,
    database: database.trim(),
    sslMode,
    ...login,
    ...secret,
    ...authority,
    ...config,
  }
}

function bigQueryBody(fields: Fields): Trial {
  const { type, database, identity, serviceAccountKey, location, datasets, apiEndpoint } = fields
  const names = datasets.split(/[\s,]+/).filter((name) => name !== '')
  const config = configOf(fields.config, { location, datasets: names, apiEndpoint })
  const at = { type, database: database.trim(), config }
  if (identity === 'machine') return { ...at, connectionMode: 'APPLICATION_DEFAULT' }
  return { ...at, connectionMode: 'SERVICE_ACCOUNT', ...(serviceAccountKey === '' ? {} : { serviceAccountKey }) }
}

/** Returns the settings without empty values. */
function configOf(
  before: Fields['config'],
  values: Readonly<Record<string, string | readonly string[]>>,
): Record<string, unknown> {
  const config: Record<string, unknown> = { ...before }
  for (const [name, value] of Object.entries(values)) {
    const given = typeof value === 'string' ? value.trim() : value
    if (given.length === 0) delete config[name]
    else config[name] = given
  }
  return config
}

function withPassword(uri: string, password: string): string {
  if (password === '') return uri
  return uri.replace(/^(\w[\w+.-]*:\/\/[^:@/]+)@/, (_, login: string) => `${login}:${encodeURIComponent(password)}@`)
}

export interface ReadString {
  readonly fields: Partial<Fields>
  readonly problem: string | null
}

const SCHEMES: Readonly<Record<string, Kind>> = {
  postgres: 'POSTGRES',
  postgresql: 'POSTGRES',
  mongodb: 'MONGODB',
  'mongodb+srv': 'MONGODB',
}

const STRICT = /^[\w+.-]+:\/\/(?:([^:@/]*)(?::([^@/]*))?@)?([^@]*)$/s
/**
 * Matches a string whose password is not percent-encoded, because people paste such strings. The last @ ends the
 * password.
 */
const LENIENT = /^[\w+.-]+:\/\/([^:@/]*):(.*)@([^@]*)$/s

/** Parses a connection string. The password moves to its field, so that the string can stay visible. */
export function readString(text: string): ReadString {
  const uri = text.trim()
  const [, scheme = ''] = /^([\w+.-]+):\/\//.exec(uri) ?? []
  const type = SCHEMES[scheme.toLowerCase()]
  if (type === undefined) return wrong('A connection string begins with postgresql://, mongodb:// or mongodb+srv://.')
  const [, login, password, rest = ''] = STRICT.exec(uri) ?? LENIENT.exec(uri) ?? []
  const shown = `${scheme}://${login === undefined ? '' : `${login}@`}${rest}`
  const [address = '', search = ''] = rest.split('?')
  const [hosts = '', path = ''] = address.split('/')
  const [, host = '', port = ''] = /^(\[[^\]]*\]|[^:,]*)(?::(\d+))?/.exec(hosts) ?? []
  if (host === '') return wrong('The connection string names no host.')
  try {
    const given = new URLSearchParams(search).get('sslmode')
    const tls = TLS.find(({ value }) => value === given)?.value
    const sslMode = tls ?? sslModeFor(host)
    const fields: Partial<Fields> = {
      type,
      uri: shown,
      host: host.replace(/^\[|\]$/g, ''),
      port,
      database: decodeURIComponent(path),
      username: decodeURIComponent(login ?? ''),
      sslMode,
      ...(password === undefined ? {} : { password: decodeURIComponent(password) }),
    }
    return { fields, problem: null }
  } catch {
    return wrong('The connection string has a percent sign that is not an escape. Write it as %25.')
  }
}

const wrong = (problem: string): ReadString => ({ fields: {}, problem })

export interface Contradiction {
  readonly field: 'host' | 'port' | 'database' | 'username'
  readonly inString: string
  readonly given: string
}

const COMPARED = ['host', 'port', 'database', 'username'] as const

/** Returns the fields that contradict the string. Returns none for a string that is sent whole. */
export function contradictionsOf(fields: Fields): readonly Contradiction[] {
  if (fields.type !== 'POSTGRES' || fields.uri.trim() === '') return []
  const { fields: read, problem } = readString(fields.uri)
  if (problem !== null) return []
  return COMPARED.flatMap((field) => {
    const [inString, given] = [read[field] ?? '', fields[field].trim()]
    return inString === '' || given === '' || inString === given ? [] : [{ field, inString, given }]
  })
}

/**
 * Returns the values that may be stored in the browser, without secrets and without strings that may contain a secret.
 */
export function withoutSecrets(fields: Fields): Fields {
  const { fields: read, problem } = readString(fields.uri)
  return { ...fields, uri: problem === null ? (read.uri ?? '') : '', password: '', serviceAccountKey: '' }
}

const TEXTS = [
  'uri',
  'host',
  'port',
  'database',
  'username',
  'tlsCa',
  'authSource',
  'location',
  'datasets',
  'apiEndpoint',
] as const satisfies readonly TextName[]

/** Reads fields that withoutSecrets() wrote. Drops unknown fields. */
export function fieldsFrom(kept: unknown): Fields {
  if (typeof kept !== 'object' || kept === null) return NO_FIELDS
  const given: Readonly<Record<string, unknown>> = { ...kept }
  const texts = Object.fromEntries(
    TEXTS.flatMap((name) => (typeof given[name] === 'string' ? [[name, given[name]]] : [])),
  )
  const type = KINDS.find((kind) => kind === given['type']) ?? NO_FIELDS.type
  const sslMode = TLS.find(({ value }) => value === given['sslMode'])?.value ?? NO_FIELDS.sslMode
  return { ...NO_FIELDS, ...texts, type, sslMode, identity: given['identity'] === 'machine' ? 'machine' : 'key' }
}
