// Parses a mongodb:// or mongodb+srv:// URI. Only listed parameters are allowed, so a URI cannot name sockets, files,
// proxies, or commands that the client library would run. Errors never quote the URI, because a secret may have been
// typed into the wrong part.
import { isIP } from 'node:net'
import { wrongHost } from '../../connection-fields.ts'

export interface Host {
  readonly host: string
  /** Null for mongodb+srv, because the SRV records contain the port. */
  readonly port: number | null
}

export interface UriParts {
  /** For mongodb+srv, exactly one. */
  readonly hosts: readonly Host[]
  readonly srv: boolean
  readonly database: string
  readonly username: string | null
  readonly password: string | null
  /** Null if the URI does not decide about TLS. */
  readonly sslMode: string | null
  readonly parameters: ReadonlyMap<string, string>
}

// The allowed parameters in lower case, because MongoDB ignores their case. The parameters in IDLE (writes, pools,
// names) have no effect.
const MEANT = ['replicaset', 'authsource', 'authmechanism', 'tls', 'ssl', 'tlsinsecure', 'tlsallowinvalidcertificates']
const MEANT_TOO = ['tlsallowinvalidhostnames', 'directconnection', 'readpreference', 'srvservicename', 'srvmaxhosts']
const IDLE = ['retrywrites', 'retryreads', 'w', 'wtimeoutms', 'journal', 'appname', 'maxpoolsize', 'minpoolsize']
const IDLE_TOO = ['maxidletimems', 'connecttimeoutms', 'sockettimeoutms', 'serverselectiontimeoutms', 'compressors']
const KNOWN = new Set([...MEANT, ...MEANT_TOO, ...IDLE, ...IDLE_TOO])
const FORM = 'uri: must be mongodb://user:password@host:port/database or mongodb+srv://user:password@host/database'

/** Returns the parts of the URI, or a list of errors. */
export function readUri(text: string): UriParts | readonly string[] {
  // A URI with several hosts is not a URL, so it is parsed by hand, as MongoDB's specification describes.
  const match = /^mongodb(\+srv)?:\/\/(?:([^/?#@]*)@)?([^/?#@]+)(?:\/([^?#]*))?(?:\?([^#]*))?(#.*)?$/.exec(text)
  if (match === null) return [FORM]
  const [, plus, login, hostList = '', path = '', query = '', fragment] = match
  const srv = plus !== undefined
  const wrong: string[] = []
  const [user, ...rest] = login?.split(':') ?? []
  const username = user === undefined ? null : decoded(user)
  const password = login?.includes(':') === true ? decoded(rest.join(':')) : null
  const database = decoded(path)
  if (username === undefined || username === '') wrong.push('uri: the user name is not correctly percent-encoded')
  if (password === undefined || rest.length > 1) wrong.push('uri: the password is not correctly percent-encoded')
  if (database === undefined || database === '') wrong.push('uri: must name a database')
  if (fragment !== undefined) wrong.push('uri: has a fragment; write a # in the password as %23')
  const hosts = hostList.split(',').map((each) => readHost(each, srv))
  for (const host of hosts) if (typeof host === 'string') wrong.push(host)
  if (srv && hosts.length > 1) wrong.push('uri: mongodb+srv takes one host')
  const parameters = readParameters(query, wrong)
  if (wrong.length > 0) return wrong
  return {
    hosts: hosts.filter((host) => typeof host !== 'string'),
    srv,
    database: database ?? '',
    username: username ?? null,
    password: password ?? null,
    sslMode: sslModeOf(parameters),
    parameters,
  }
}

function readHost(text: string, srv: boolean): Host | string {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text)
  const host = match?.[1] ?? decoded(match?.[2] ?? '') ?? ''
  const port = match?.[3] === undefined ? 27_017 : Number(match[3])
  if (match === null || wrongHost(host).length > 0 || port < 1 || port > 65_535)
    return 'uri: each host must be a host name or an IP address, with or without a port'
  // The client library would treat a name that ends in .sock as a socket.
  if (/\.sock$/i.test(host)) return 'uri: a socket is not allowed'
  if (!srv) return { host, port }
  if (match[3] !== undefined) return 'uri: mongodb+srv takes no port'
  if (isIP(host) !== 0) return 'uri: mongodb+srv takes a name, not an address'
  return { host, port: null }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

function readParameters(query: string, wrong: string[]): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>()
  for (const part of query.split('&').filter((each) => each !== '')) {
    const [name = '', ...value] = part.split('=')
    const key = name.toLowerCase()
    // A name with other characters may be part of a password, so it is not repeated.
    const shown = /^[a-zA-Z]{1,40}$/.test(name) ? `the parameter ${name}` : 'a parameter'
    const text = decoded(value.join('='))
    if (!KNOWN.has(key)) wrong.push(`uri: ${shown} is not allowed`)
    else if (parameters.has(key)) wrong.push(`uri: ${shown} is given twice`)
    else if (text === undefined || text === '') wrong.push(`uri: ${shown} has no value`)
    else parameters.set(key, text)
  }
  for (const name of [
    'tls',
    'ssl',
    'tlsinsecure',
    'tlsallowinvalidcertificates',
    'tlsallowinvalidhostnames',
    'directconnection',
  ]) {
    const value = parameters.get(name)
    if (value !== undefined && value !== 'true' && value !== 'false') wrong.push(`uri: ${name} must be true or false`)
  }
  if (parameters.has('tls') && parameters.has('ssl') && parameters.get('tls') !== parameters.get('ssl'))
    wrong.push('uri: tls and ssl contradict each other')
  return parameters
}

/** Returns null if the URI sets no sslMode, or only turns TLS on. */
function sslModeOf(parameters: ReadonlyMap<string, string>): string | null {
  const is = (name: string): boolean => parameters.get(name) === 'true'
  if ((parameters.get('tls') ?? parameters.get('ssl')) === 'false') return 'disable'
  if (is('tlsinsecure') || is('tlsallowinvalidcertificates')) return 'require'
  if (is('tlsallowinvalidhostnames')) return 'verify-ca'
  return null
}
