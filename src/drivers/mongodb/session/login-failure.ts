// Turns a failed login into one sentence for its kind of error. The raw error is only the cause, because it may contain
// the user name, an address, or other text of the server.
import { AppError } from '../../../errors.ts'
import { RefusedAddress } from '../../allowed-addresses.ts'
import { networkSentence } from '../../network-failure.ts'
import type { Target } from './settings.ts'

const SERVER: Readonly<Record<number, string>> = {
  11: 'The database refuses the user name or password.',
  13: 'The login is not allowed to read the server’s version, which every login needs.',
  18: 'The database refuses the user name, the password, their authSource, or the mechanism.',
  334: 'The database does not support this authentication mechanism.',
  8000: 'The database refuses the user name or password.',
  17: 'The server uses another version of the protocol.',
}

export function loginFailure(error: unknown, target: Target): AppError {
  if (error instanceof AppError) return error
  return new AppError('DATASOURCE_UNAVAILABLE', sentence(error, target), { cause: error })
}

function sentence(error: unknown, target: Target): string {
  const chain = causes(error)
  const refused = chain.find((each) => each instanceof RefusedAddress)
  if (refused !== undefined) return refused.message
  for (const each of chain) {
    const code: unknown = Reflect.get(each, 'code')
    const known = typeof code === 'number' ? SERVER[code] : typeof code === 'string' ? byName(code, target) : undefined
    if (known !== undefined) return known
  }
  const names = new Set(chain.map((each) => each.name))
  const said = chain.map((each) => each.message).join('\n')
  if (names.has('MongoCompatibilityError')) return 'The server is older than MongoDB 5.0, the oldest version served.'
  if (/Authentication failed|auth required|bad auth/i.test(said)) return SERVER[18] ?? ''
  if (names.has('TimeoutError')) return 'The server did not answer in time.'
  if (names.has('MongoServerSelectionError')) return selection(said, target)
  if (names.has('MongoParseError')) return 'The DNS records of the host are not those of a MongoDB cluster.'
  if (/timed out/.test(said)) return 'The server did not answer in time.'
  if (/closed|hang up|disconnected/i.test(said)) return closed(target)
  return 'The database refused the connection.'
}

function byName(code: string, target: Target): string | undefined {
  if (code === 'ECONNRESET' || code === 'EPIPE') return closed(target)
  if (code.startsWith('ERR_SSL') || code === 'EPROTO' || code.startsWith('ERR_TLS'))
    return networkSentence(code) ?? 'The TLS handshake with the server failed.'
  return networkSentence(code)
}

function closed(target: Target): string {
  return target.sslMode === 'disable'
    ? 'The server closed the connection; it may ask for TLS, which sslMode disable does not use.'
    : 'The server closed the connection during the TLS handshake; it may offer no TLS, or ask for a client certificate.'
}

function selection(said: string, target: Target): string {
  if (target.replicaSet !== null && /setName|replica set name/i.test(said))
    return 'The server is not a member of the replica set that replicaSet names.'
  return target.replicaSet === null && target.hosts.length === 1
    ? 'No server could be chosen: the host does not answer as a server that accepts reads.'
    : 'No member of the replica set could be chosen: the set has no primary now, no member fits readPreference, or the set has another name.'
}

/** Returns the error, its causes, and the last error of each server that the library knows. */
function causes(error: unknown): readonly Error[] {
  const found: Error[] = []
  const visit = (each: unknown): void => {
    if (!(each instanceof Error) || found.includes(each) || found.length > 50) return
    found.push(each)
    visit(each.cause)
    const reason: unknown = Reflect.get(each, 'reason')
    const servers: unknown = typeof reason === 'object' && reason !== null ? Reflect.get(reason, 'servers') : null
    if (servers instanceof Map) for (const server of servers.values()) visit(errorOf(server))
    if (each instanceof AggregateError) each.errors.forEach(visit)
  }
  visit(error)
  return found
}

function errorOf(server: unknown): unknown {
  return typeof server === 'object' && server !== null ? Reflect.get(server, 'error') : null
}
