// Reads a postgres:// URI. Only listed parameters are allowed, because others can name a socket, a file, a command or a
// second host. Errors repeat no part of the URI except plain parameter names, because any part may contain a secret.
import { bareHost } from '../../../host-names.ts'

export interface UriParts {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly username: string
  readonly password: string | null
  readonly sslMode: string | null
  readonly channelBinding: boolean
}

const PARAMETERS = new Set(['sslmode', 'sslrootcert', 'channel_binding', 'application_name', 'connect_timeout'])

/** Returns the parts of a URI, or one sentence for each mistake in it. */
export function readUri(text: string): UriParts | readonly string[] {
  const url = URL.parse(text)
  if (url === null || (url.protocol !== 'postgres:' && url.protocol !== 'postgresql:'))
    return ['uri: must be postgres://user:password@host:port/database with one host']
  const wrong: string[] = []
  const username = decoded(url.username)
  const password = decoded(url.password)
  const database = decoded(url.pathname.slice(1))
  const host = bareHost(decoded(url.hostname) ?? '')
  if (host === '') wrong.push('uri: names no host')
  if (username === undefined || username === '') wrong.push('uri: names no user')
  if (password === undefined) wrong.push('uri: the password is not correctly percent-encoded')
  if (database === undefined || database === '' || database.includes('/')) wrong.push('uri: names no database')
  if (url.hash !== '') wrong.push('uri: has a fragment; a # in the password must be written as %23')
  wrong.push(...wrongParameters(url.searchParams))
  if (wrong.length > 0) return wrong
  return {
    host,
    port: url.port === '' ? 5432 : Number(url.port),
    database: database ?? '',
    username: username ?? '',
    password: password === '' ? null : (password ?? null),
    sslMode: url.searchParams.get('sslmode'),
    channelBinding: url.searchParams.get('channel_binding') === 'require',
  }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

function wrongParameters(parameters: URLSearchParams): string[] {
  const wrong: string[] = []
  for (const name of new Set(parameters.keys())) {
    // A name with other characters may be a part of a password.
    const shown = /^[a-zA-Z_]{1,40}$/.test(name) ? `the parameter ${name}` : 'a parameter'
    if (!PARAMETERS.has(name)) wrong.push(`uri: ${shown} is not allowed (allowed: ${[...PARAMETERS].join(', ')})`)
    else if (parameters.getAll(name).length > 1) wrong.push(`uri: ${shown} is given twice`)
  }
  const rootCert = parameters.get('sslrootcert')
  if (rootCert !== null && rootCert !== 'system')
    wrong.push('uri: sslrootcert must be system; send a certificate as the secret tlsCa')
  const binding = parameters.get('channel_binding')
  if (binding !== null && !['disable', 'prefer', 'require'].includes(binding))
    wrong.push('uri: channel_binding must be disable, prefer or require')
  return wrong
}
