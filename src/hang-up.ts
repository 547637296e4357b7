// Creates a signal that aborts when the caller disconnects before the answer was written. Fastify's request.signal
// listens to the request's `close` event, which may already have fired. This signal depends on the response instead,
// and also aborts if the response is already closed.
import type { ServerResponse } from 'node:http'

/** The abort reason. It is never shown, because the caller has disconnected. */
export class HungUp extends Error {
  override readonly name = 'HungUp'
}

/** Returns the signal. It aborts with HungUp, but never after the answer was sent. */
export function hangUpOf(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  const closed = () => {
    if (!response.writableFinished) controller.abort(new HungUp('the caller hung up'))
  }
  if (response.closed) closed()
  else response.once('close', closed)
  return controller.signal
}
