// The access log has one line for each answer. It is off unless VITRINE_ACCESS_LOG=1. A line contains no path, query
// string, header, text, address or name, because paths may contain invitation tokens and table names.
import type { Logger } from 'pino'
import type { Caller, Trace } from '../auth/caller.ts'

export interface Answered {
  readonly requestId: string
  readonly method: string
  /** The operation id, or `other` if the request has none. */
  readonly operation: string
  readonly status: number
  readonly durationMs: number
  readonly code: string | null
  readonly caller?: Caller | null | undefined
  /** For traces. server.ts removes the header `traceparent` if no proxy is trusted. */
  readonly trace?: Trace | null | undefined
  readonly traceparent?: string | undefined
  /** The parameters of the path. Only ids of teams and datasources are logged. */
  readonly params?: unknown
}

export type AccessLog = (answered: Answered) => void

export function openAccessLog(log: Pick<Logger, 'info'>): AccessLog {
  return ({ caller, params, durationMs, code, requestId, method, operation, status }) =>
    log.info(
      {
        requestId,
        method,
        operation,
        status,
        ...(code !== null && { code }),
        durationMs: Math.round(durationMs * 100) / 100,
        ...whoOf(caller),
        ...placeOf(params),
      },
      'answered',
    )
}

function whoOf(caller: Answered['caller']): object {
  if (caller === undefined || caller === null) return {}
  const { accountId } = caller
  switch (caller.kind) {
    case 'key':
      return { accountId, keyId: caller.keyId }
    case 'grant':
      return { accountId, grantId: caller.grantId }
    case 'session':
      return { accountId }
    default:
      return caller satisfies never
  }
}

/** A caller may send any text instead of an id. Only texts in the format of our ids are logged. */
const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/

function placeOf(params: unknown): object {
  if (typeof params !== 'object' || params === null) return {}
  const { teamId, id } = { teamId: undefined, id: undefined, ...params }
  return { ...(isId(teamId) && { teamId }), ...(isId(id) && { datasourceId: id }) }
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && ID.test(value)
}
