// A signal that is aborted when the caller goes away before the answer was written. Fastify's own request.signal hangs
// on the request's `close`, which may be over before anybody asks; the response's is not.
import type { ServerResponse } from 'node:http'

/** The reason of such a signal; never shown, as nobody is left to read it. */
export class HungUp extends Error {
  override readonly name = 'HungUp'
}

/** Aborts with HungUp; stays quiet once the answer is out. */
export function hangUpOf(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  const closed = () => {
    if (!response.writableFinished) controller.abort(new HungUp('the caller hung up'))
  }
  if (response.closed) closed()
  else response.once('close', closed)
  return controller.signal
}
