// Says what a caller sees if Google or the network refuses or fails (docs/errors.md#query_failed). It is one of our own
// sentences, chosen by BigQuery's reason, BigQuery's message, or the code of the network error. BigQuery's message
// itself is shown only after a dry run, which has read no data.
import { AppError } from '../../../errors.ts'
import { RefusedAddress } from '../../allowed-addresses.ts'
import { networkSentence } from '../../network-failure.ts'
import { Unreadable } from './http-exchange.ts'
import { ErrorResponse } from './error-response.ts'

const BUSY_SECONDS = 10

/** Reasons for which access is refused, whatever the request is. */
const ACCESS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    invalid_grant:
      'Google refuses the service account’s key: it was revoked or has expired, or the clock of this machine is wrong.',
    invalid_client: 'Google does not know the service account; it may have been deleted.',
    unauthorized_client: 'Google does not know the service account; it may have been deleted.',
    invalid_scope: 'Google does not let the service account use BigQuery.',
    account_deleted: 'The service account was deleted.',
    authError: 'BigQuery refuses the credentials of this datasource.',
    UNAUTHENTICATED: 'BigQuery refuses the credentials of this datasource.',
    required: 'BigQuery asks for credentials.',
    invalidUser: 'BigQuery refuses the credentials of this datasource.',
    accessNotConfigured: 'The BigQuery API is not enabled in the project.',
    SERVICE_DISABLED: 'The BigQuery API is not enabled in the project.',
    billingNotEnabled: 'Billing is not enabled in the project.',
    policyViolation: 'A policy of the organization refuses this datasource the access.',
    vpcServiceControls: 'A policy of the organization refuses this datasource the access.',
    SECURITY_POLICY_VIOLATED: 'A policy of the organization refuses this datasource the access.',
  }),
)
const DENIED = 'The credentials of this datasource may not do this in BigQuery.'
const JOBS_DENIED = 'The credentials of this datasource may not run queries in the project (bigquery.jobs.create).'
const DISABLED = 'The BigQuery API is not enabled in the project.'
const NO_PROJECT = 'There is no such project in BigQuery.'
const NOTHING = 'There is no such dataset or table in the project.'
const REFUSED = 'BigQuery refused the request.'
const NO_ANSWER = 'BigQuery did not answer in time.'
const FAILING = 'BigQuery is failing at the moment; try again later.'

const BUSY = new Set([
  'quotaExceeded',
  'rateLimitExceeded',
  'jobRateLimitExceeded',
  'userRateLimitExceeded',
  'dailyLimitExceeded',
  'RESOURCE_EXHAUSTED',
])
const DENYING = new Set(['accessDenied', 'forbidden', 'PERMISSION_DENIED'])
const TIMED_OUT = new Set(['timeout', 'stopped'])
const ITS_OWN = new Set([
  'backendError',
  'internalError',
  'jobBackendError',
  'jobInternalError',
  'INTERNAL',
  'UNAVAILABLE',
])

/** Reasons for which the query itself fails, in the dry run or in the run. */
const QUERY: ReadonlyMap<string, string> = new Map(
  Object.entries({
    resourcesExceeded: 'The query needs more resources than BigQuery gives it; read or sort less at once.',
    responseTooLarge: 'The answer is larger than BigQuery gives at once; read fewer rows or columns.',
    billingTierLimitExceeded: 'The query needs more computing than BigQuery allows for the bytes that it reads.',
    tableUnavailable: 'A table of this query cannot be read at the moment; try again.',
    rowAccessPolicy: 'A row access policy of a table refuses this query.',
  }),
)

/**
 * Returns the error if Google, the network or the credentials refuse access, whatever the query is. An AppError stays
 * unchanged. Returns null for an error that the query caused, and for a defect of the service.
 */
export function accessFailure(error: unknown): AppError | null {
  if (error instanceof AppError) return error
  if (error instanceof ErrorResponse) return refusedAccess(error)
  if (error instanceof Unreadable) {
    return unavailable('The server at the address of this datasource does not answer like BigQuery.', error)
  }
  const sentence = networkFailure(error)
  return sentence === null ? null : unavailable(sentence, error)
}

/**
 * Converts an error that no query caused. If accessFailure() does not know it, it becomes DATASOURCE_UNAVAILABLE if
 * BigQuery refused the call, and INTERNAL otherwise.
 */
export function failure(error: unknown): AppError {
  const known = accessFailure(error)
  if (known !== null) return known
  if (error instanceof ErrorResponse) return unavailable(error.reason === 'notFound' ? NOTHING : REFUSED, error)
  return new AppError('INTERNAL', 'Something went wrong here.', { cause: error })
}

function refusedAccess(refused: ErrorResponse): AppError | null {
  const { reason, status, googleText } = refused
  if (BUSY.has(reason) || (status === 429 && !QUERY.has(reason))) return busy(refused)
  if (TIMED_OUT.has(reason)) return cancelled(refused)
  if (ITS_OWN.has(reason)) return unavailable(FAILING, refused)
  const sentence = ACCESS.get(reason) ?? (status === 401 ? ACCESS.get('authError') : undefined)
  if (sentence !== undefined) return unavailable(sentence, refused)
  // The query does not cause any other 403 either. The text of this 403 may not be shown.
  if (DENYING.has(reason) || (status === 403 && reason !== '' && !QUERY.has(reason))) return denied(refused)
  if (reason === 'notFound' && /^Not found: Project\b/i.test(googleText)) return unavailable(NO_PROJECT, refused)
  if (status >= 500 || (status >= 300 && status < 400)) return unavailable(FAILING, refused)
  // An HTML page, an empty body, or the error of a proxy.
  return reason === '' && status >= 400 ? unavailable(REFUSED, refused) : null
}

function denied(refused: ErrorResponse): AppError {
  const { googleText } = refused
  if (/has not been used in project|it is disabled/i.test(googleText)) return unavailable(DISABLED, refused)
  if (/billing (?:has not been enabled|is disabled|account)/i.test(googleText)) {
    return unavailable('Billing is not enabled in the project.', refused)
  }
  if (/VPC Service Controls|organization.{0,3}s policy/i.test(googleText)) {
    return unavailable('A policy of the organization refuses this datasource the access.', refused)
  }
  return unavailable(/bigquery\.jobs\.create/.test(googleText) ? JOBS_DENIED : DENIED, refused)
}

/** Converts an error that the query caused. Returns null if the sentence depends on BigQuery's message. */
export function queryFailure(refused: ErrorResponse): AppError | null {
  const sentence = QUERY.get(refused.reason)
  if (sentence !== undefined) return new AppError('QUERY_FAILED', sentence, { cause: refused })
  if (refused.reason === 'notFound') return schemaStale(refused)
  return null
}

/** A table, a dataset or a column has disappeared since introspection. */
export function schemaStale(cause?: unknown): AppError {
  const message =
    'The database has changed since it was introspected: something that this query reads no longer exists, or is in another location than the datasource’s. An administrator must introspect it again.'
  return new AppError('SCHEMA_STALE', message, { cause })
}

/** BigQuery reports that a timeout or a cancel has ended the job. */
export function cancelled(cause?: unknown): AppError {
  return new AppError('QUERY_TIMEOUT', 'The query took too long and was cancelled in BigQuery.', { cause })
}

/** True if the deadline has aborted the signal, and not a caller who disconnected. */
export function isDeadline({ reason }: AbortSignal): boolean {
  if (!(reason instanceof AppError) || reason.code !== 'QUERY_TIMEOUT') return false
  return reason.cause === undefined || (reason.cause instanceof Error && reason.cause.name === 'TimeoutError')
}

export function unavailable(sentence: string, cause?: unknown): AppError {
  return new AppError('DATASOURCE_UNAVAILABLE', sentence, { cause })
}

function busy(refused: ErrorResponse): AppError {
  const sentence =
    refused.reason === 'quotaExceeded'
      ? 'A quota of the project in BigQuery is used up; try again later.'
      : 'BigQuery accepts no more queries of this project at the moment; try again later.'
  const retryAfter = Math.max(BUSY_SECONDS, Math.ceil((refused.retryAfterMs ?? 0) / 1000))
  return new AppError('OVERLOADED', sentence, { extra: { retryAfter }, cause: refused })
}

/**
 * Returns the sentence for a network failure or a timeout. Returns null for a defect of the service, and for the abort
 * of a caller who disconnected.
 */
function networkFailure(error: unknown): string | null {
  if (!(error instanceof Error)) return null
  for (const each of chainOf(error)) {
    if (each instanceof RefusedAddress) return each.message
    if (each.name === 'TimeoutError') return NO_ANSWER
    const code: unknown = Reflect.get(each, 'code')
    if (typeof code !== 'string') continue
    const known = networkSentence(code)
    if (known !== undefined) return known
    if (/^UND_ERR_\w+_TIMEOUT$/.test(code)) return NO_ANSWER
    if (code.startsWith('ERR_SSL') || code.startsWith('ERR_TLS') || code === 'EPROTO')
      return 'The TLS handshake with the server failed.'
    if (code.startsWith('UND_ERR_SOCKET') || code === 'UND_ERR_CLOSED' || code === 'UND_ERR_DESTROYED')
      return 'The connection to BigQuery was lost.'
    if (code.startsWith('UND_ERR') || code.startsWith('HPE_'))
      return 'The server at the address of this datasource does not answer like BigQuery.'
  }
  return null
}

function chainOf(error: Error): readonly Error[] {
  const chain: Error[] = []
  const visit = (each: unknown): void => {
    if (!(each instanceof Error) || chain.includes(each) || chain.length > 20) return
    chain.push(each)
    if (each instanceof AggregateError) each.errors.forEach(visit)
    visit(each.cause)
  }
  visit(error)
  return chain
}
