// Why a login did not come about, as one sentence of ours by class. The raw error is only the cause: it may hold the
// user's name, an address, or whatever a server chose to say.
import { AppError } from '../../errors.ts'
import type { Target } from './settings.ts'

const NETWORK: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'The connection was refused: nothing listens at that host and port.',
  ECONNRESET: 'The server closed the connection during the login.',
  EPIPE: 'The server closed the connection during the login.',
  ENOTFOUND: 'There is no such host.',
  EAI_AGAIN: 'The host’s name could not be resolved just now.',
  ENODATA: 'There is no such host.',
  EHOSTUNREACH: 'The host cannot be reached from here.',
  ENETUNREACH: 'The host cannot be reached from here.',
  EHOSTDOWN: 'The host cannot be reached from here.',
  EADDRNOTAVAIL: 'The host cannot be reached from here.',
  EACCES: 'The host cannot be reached from here.',
  ETIMEDOUT: 'The server did not answer in time.',
}

const UNKNOWN_CA =
  'The server’s certificate comes from an authority that is not trusted; give its certificate as tlsCa.'
const TLS: Readonly<Record<string, string>> = {
  ERR_TLS_CERT_ALTNAME_INVALID: 'The server’s certificate is for another host name.',
  CERT_HAS_EXPIRED: 'The server’s certificate has expired.',
  CERT_NOT_YET_VALID: 'The server’s certificate is not valid yet.',
  CERT_REVOKED: 'The server’s certificate was revoked.',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_CA,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_CA,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_CA,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_CA,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_CA,
  CERT_UNTRUSTED: UNKNOWN_CA,
  CERT_SIGNATURE_FAILURE: UNKNOWN_CA,
  INVALID_CA: UNKNOWN_CA,
}

const SQL_STATE: Readonly<Record<string, string>> = {
  '28P01': 'The database refuses the user name or password.',
  '28000': 'The database refuses this login: its rules do not let this user in from here, or not this way.',
  '3D000': 'There is no such database on the server.',
  '42501': 'The login may not connect to that database.',
  '53300': 'The database has no connection free.',
  '55000': 'The database does not accept connections.',
  '57P03': 'The database is starting up or shutting down.',
  '57P05': 'The database ended the connection.',
}

/** DATASOURCE_UNAVAILABLE with the sentence that fits. */
export function loginFailure(error: unknown, target: Target): AppError {
  if (error instanceof AppError) return error
  return new AppError('DATASOURCE_UNAVAILABLE', sentence(error, target), { cause: error })
}

function sentence(error: unknown, target: Target): string {
  if (!(error instanceof Error)) return 'The database cannot be reached.'
  if (error.name === 'TimeoutError') return 'The server did not answer in time.'
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const known = NETWORK[code] ?? TLS[code] ?? SQL_STATE[code]
  if (known !== undefined) return known
  if (code.startsWith('28')) return 'The database refuses this login.'
  if (error.message === 'The server does not support SSL connections')
    return 'The server offers no TLS; sslMode disable would connect without it.'
  if (error.message.startsWith('SASL'))
    return target.password === null || target.password === ''
      ? 'The database asks for a password, and none is set.'
      : 'The database and this login could not agree on how to check the password.'
  if (code.startsWith('ERR_SSL') || code === 'EPROTO' || code.startsWith('ERR_TLS'))
    return 'The TLS handshake with the server failed.'
  if (/terminated|closed|SSL connection/.test(error.message))
    return 'The server closed the connection during the login.'
  return 'The database refused the connection.'
}
