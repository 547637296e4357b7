// Each request has an id, which is in its answer, log lines and audit rows. Our ids are a random start for each process
// and a counter. They are short and similar, so the audit compresses well.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

export const REQUEST_ID = 'x-request-id'

/** Safe in a log, a header and a JSON string. */
const SAFE = /^[\w-]{8,64}$/

export interface RequestIds {
  next(): string
  /** Returns the id that a trusted proxy has sent, if it is safe, or else a new id. */
  from(given: string | undefined): string
  of(request: IncomingMessage): string
}

/** Without `trustsProxy`, ids from requests are ignored, because a caller could send the id of another request. */
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
