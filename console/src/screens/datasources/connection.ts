// Pure: the fields of a connection as a person fills them in, and the body that they become.
import type { Input } from '../../api/types.ts'
import type { Kind } from './kinds.ts'

type Trial = Input<'tryConnection'>['body']
export type SslMode = NonNullable<Trial['sslMode']>

export interface Fields {
  readonly type: Kind
  /** A connection string without its password. MongoDB connects by it; for PostgreSQL it only fills the other fields. */
  readonly uri: string
  readonly host: string
  readonly port: string
  readonly database: string
  readonly username: string
  readonly password: string
  readonly sslMode: SslMode
  readonly serviceAccountKey: string
  readonly location: string
}

export const NO_FIELDS: Fields = {
  type: 'POSTGRES',
  uri: '',
  host: '',
  port: '',
  database: '',
  username: '',
  password: '',
  sslMode: 'verify-full',
  serviceAccountKey: '',
  location: '',
}

export const TLS = [
  { value: 'verify-full', label: 'Verify the certificate and the name' },
  { value: 'verify-ca', label: 'Verify the certificate' },
  { value: 'require', label: 'Encrypt, verify nothing' },
  { value: 'disable', label: 'No encryption' },
] as const satisfies readonly { readonly value: SslMode; readonly label: string }[]

const DEFAULT_PORT: Readonly<Record<Kind, number | null>> = { POSTGRES: 5432, MONGODB: 27_017, BIGQUERY: null }

export const defaultPort = (type: Kind) => DEFAULT_PORT[type]

/** A string of several hosts, or of a DNS record, is more than the fields can say: it is sent as it is. */
export const isSentWhole = ({ type, uri }: Fields) => type === 'MONGODB' && uri.trim() !== ''

/** What the fields say, for a test and for creation. */
export function bodyOf(fields: Fields): Trial {
  const { type, uri, host, port, database, username, password, sslMode } = fields
  if (type === 'BIGQUERY') {
    const { serviceAccountKey, location } = fields
    const config = location.trim() === '' ? {} : { config: { location: location.trim() } }
    return { type, connectionMode: 'SERVICE_ACCOUNT', database: database.trim(), serviceAccountKey, ...config }
  }
  if (isSentWhole(fields)) return { type, connectionMode: 'URI', uri: withPassword(uri.trim(), password) }
  const at = Number(port.trim() === '' ? DEFAULT_PORT[type] : port)
  const login = username.trim() === '' ? {} : { username: username.trim() }
  const secret = password === '' ? {} : { password }
  return {
    type,
    connectionMode: 'DIRECT',
    host: host.trim(),
    port: at,
    database: database.trim(),
    sslMode,
    ...login,
    ...secret,
  }
}

function withPassword(uri: string, password: string): string {
  if (password === '') return uri
  return uri.replace(/^(\w[\w+.-]*:\/\/[^:@/]+)@/, (_, login: string) => `${login}:${encodeURIComponent(password)}@`)
}

export interface ReadString {
  readonly fields: Partial<Fields>
  /** What is wrong with it. */
  readonly problem: string | null
}

const SCHEMES: Readonly<Record<string, Kind>> = {
  postgres: 'POSTGRES',
  postgresql: 'POSTGRES',
  mongodb: 'MONGODB',
  'mongodb+srv': 'MONGODB',
}

/** Reads a connection string. The password moves into its field, so that the string can stay visible. */
export function readString(text: string): ReadString {
  const uri = text.trim()
  const [, scheme = ''] = /^([\w+.-]+):\/\//.exec(uri) ?? []
  const type = SCHEMES[scheme.toLowerCase()]
  if (type === undefined) return wrong('A connection string begins with postgresql://, mongodb:// or mongodb+srv://.')
  const [, login, password, rest = ''] = /^[\w+.-]+:\/\/(?:([^:@/]*)(?::([^@/]*))?@)?(.*)$/s.exec(uri) ?? []
  const shown = `${scheme}://${login === undefined ? '' : `${login}@`}${rest}`
  const [address = '', search = ''] = rest.split('?')
  const [hosts = '', path = ''] = address.split('/')
  const [, host = '', port = ''] = /^(\[[^\]]*\]|[^:,]*)(?::(\d+))?/.exec(hosts) ?? []
  if (host === '') return wrong('The connection string names no host.')
  try {
    const given = new URLSearchParams(search).get('sslmode')
    const tls = TLS.find(({ value }) => value === given)?.value
    const isOwn = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(host)
    const sslMode = tls ?? (isOwn && type === 'POSTGRES' ? 'disable' : 'verify-full')
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

/** Where a string and the fields say different things. Nothing for a string that is sent as it is. */
export function contradictionsOf(fields: Fields): readonly Contradiction[] {
  if (fields.type !== 'POSTGRES' || fields.uri.trim() === '') return []
  const { fields: read, problem } = readString(fields.uri)
  if (problem !== null) return []
  return COMPARED.flatMap((field) => {
    const [inString, given] = [read[field] ?? '', fields[field].trim()]
    return inString === '' || given === '' || inString === given ? [] : [{ field, inString, given }]
  })
}
