// Creates a signal that aborts when the caller disconnects before the answer was sent. Fastify's request.signal is not
// enough, because it listens to the event `close` of the request, which may have come before.
import type { ServerResponse } from 'node:http'

/** Nobody sees this error, because the caller has disconnected. */
export class HungUp extends Error {
  override readonly name = 'HungUp'
}

const signals = new WeakMap<ServerResponse, AbortSignal>()

/**
 * Returns a signal that aborts with HungUp, also if the response is already closed, but not after the answer was sent.
 * Each call for a response returns the same signal.
 */
export function hangUpOf(response: ServerResponse): AbortSignal {
  const signal = signals.get(response) ?? listen(response)
  signals.set(response, signal)
  return signal
}

function listen(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  const closed = () => {
    if (!response.writableFinished) controller.abort(new HungUp('the caller hung up'))
  }
  if (response.closed) closed()
  else response.once('close', closed)
  return controller.signal
}
