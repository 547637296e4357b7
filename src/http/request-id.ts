// Gives each request an id, which links its answer, log lines and audit rows. Our own ids consist of a random start for
// each process and a counter. They are short, and similar to each other, which helps the compression of the audit.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

export const REQUEST_ID = 'x-request-id'

/** Bounded, and safe in a log, a header and a JSON string. */
const SAFE = /^[\w-]{8,64}$/

export interface RequestIds {
  next(): string
  /** Returns the id that a trusted proxy gave, if the id is safe. Otherwise returns a new id. */
  from(given: string | undefined): string
  /** Like from(), for the id in the request's header. Replaces the header with the returned id. */
  of(request: IncomingMessage): string
}

/** Creates request ids. Without `trustsProxy`, ignores given ids: a caller could send the id of another request. */
export function openRequestIds(trustsProxy: boolean): RequestIds {
  const start = randomBytes(6).toString('hex')
  let count = 0
  const next = (): string => `${start}-${(++count).toString(36)}`
  const from: RequestIds['from'] = (given) => (trustsProxy && given !== undefined && SAFE.test(given) ? given : next())
  return {
    next,
    from,
    of({ headers }) {
      const given = headers[REQUEST_ID]
      const id = from(typeof given === 'string' ? given : undefined)
      headers[REQUEST_ID] = id
      return id
    },
  }
}
