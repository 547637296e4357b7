// A signal that aborts when the caller disconnects before the answer was written. Fastify's request.signal listens to
// the request's `close` event, which may already have fired. This signal listens to the response's `close` event, which
// cannot have fired before.
import type { ServerResponse } from 'node:http'

/** The reason of such a signal. It is never shown, because the caller is gone. */
export class HungUp extends Error {
  override readonly name = 'HungUp'
}

/** Aborts with HungUp. Does nothing once the answer is sent. */
export function hangUpOf(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  const closed = () => {
    if (!response.writableFinished) controller.abort(new HungUp('the caller hung up'))
  }
  if (response.closed) closed()
  else response.once('close', closed)
  return controller.signal
}
