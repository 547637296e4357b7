// Names each request, so that an answer, its log lines and its audit rows can be found from each other. An id of our own is
// a random start for each process and a counter: short, and alike for the compression of the audit.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

export const REQUEST_ID = 'x-request-id'

/** Bounded, and harmless in a log, a header and a JSON text. */
const SAFE = /^[\w-]{8,64}$/

export interface RequestIds {
  next(): string
  /** The id of a proxy in front, if it is safe; else the next one. Replaces the header that the request brought. */
  of(request: IncomingMessage): string
}

/** `trustsProxy`: without a proxy in front, a caller could send the id of another caller's request. */
export function openRequestIds(trustsProxy: boolean): RequestIds {
  const start = randomBytes(6).toString('hex')
  let count = 0
  const next = (): string => `${start}-${(++count).toString(36)}`
  return {
    next,
    of({ headers }) {
      const given = headers[REQUEST_ID]
      const id = trustsProxy && typeof given === 'string' && SAFE.test(given) ? given : next()
      headers[REQUEST_ID] = id
      return id
    },
  }
}
