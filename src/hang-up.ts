// Creates a signal that aborts if the caller disconnects before the answer is written. Fastify's request.signal depends
// on the request's event `close`, which may have come already. So this signal depends on the response.
import type { ServerResponse } from 'node:http'

/** Nobody sees this error, because the caller has disconnected. */
export class HungUp extends Error {
  override readonly name = 'HungUp'
}

/** Aborts with HungUp, also if the response is already closed, but never after the answer was sent. */
export function hangUpOf(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  const closed = () => {
    if (!response.writableFinished) controller.abort(new HungUp('the caller hung up'))
  }
  if (response.closed) closed()
  else response.once('close', closed)
  return controller.signal
}
