// Explains a failed login by one sentence. The raw error is only the cause, because it may contain the user's name, an
// address, or anything that the server sent.
import { AppError } from '../../../errors.ts'
import { networkSentence } from '../../network-failure.ts'
import type { Target } from './settings.ts'

const SQL_STATE: Readonly<Record<string, string>> = {
  '28P01': 'The database refuses the user name or password.',
  '28000':
    'The database refuses this login: its rules do not allow this user from this address, or not with this method.',
  '3D000': 'The server does not have this database.',
  '42501': 'The login may not connect to that database.',
  '53300': 'The database has no free connection.',
  '55000': 'The database does not accept connections.',
  '57P03': 'The database is starting up or shutting down.',
  '57P05': 'The database ended the connection.',
}

export function loginFailure(error: unknown, target: Target): AppError {
  if (error instanceof AppError) return error
  return new AppError('DATASOURCE_UNAVAILABLE', sentence(error, target), { cause: error })
}

function sentence(error: unknown, target: Target): string {
  if (!(error instanceof Error)) return 'The database cannot be reached.'
  if (error.name === 'TimeoutError') return 'The server did not answer in time.'
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const known = networkSentence(code) ?? SQL_STATE[code]
  if (known !== undefined) return known
  if (code.startsWith('28')) return 'The database refuses this login.'
  if (error.message === 'The server does not support SSL connections')
    return 'The server does not offer TLS. Set sslMode to disable to connect without TLS.'
  if (error.message.startsWith('SASL'))
    return target.password === null || target.password === ''
      ? 'The database requires a password, but none is set.'
      : 'The database and this service support no common method to check the password.'
  if (code.startsWith('ERR_SSL') || code === 'EPROTO' || code.startsWith('ERR_TLS'))
    return 'The TLS handshake with the server failed.'
  if (/terminated|closed|SSL connection/.test(error.message))
    return 'The server closed the connection during the login.'
  return 'The database refused the connection.'
}
