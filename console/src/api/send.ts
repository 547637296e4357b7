// Sends one HTTP request to the service, as JSON. Records whether the service answers at all.
import { Refused, Unreachable } from './failure.ts'
import { observable } from './observable.ts'

/** False while the service does not answer. The offline bar is then shown. */
export const online = observable(true)

export interface Sent {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

/**
 * Sends the request and returns the answer. Throws Refused for an error answer, Unreachable if there is no answer, and
 * the reason of an aborted signal.
 */
export async function send(request: Sent): Promise<Response> {
  const { method, path, body, signal } = request
  const headers: Record<string, string> = { accept: 'application/json', ...request.headers }
  if (body !== undefined) headers['content-type'] = 'application/json'
  const response = await fetch(path, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted === true) throw error
    online.set(false)
    throw new Unreachable()
  })
  online.set(true)
  if (!response.ok) throw new Refused(response.status, await bodyOf(response))
  return response
}

/** Returns the body, or an empty object if the body is no JSON object: a proxy may have answered in another format. */
async function bodyOf(response: Response): Promise<Readonly<Record<string, unknown>>> {
  try {
    const body: unknown = await response.json()
    return typeof body === 'object' && body !== null && !Array.isArray(body)
      ? Object.fromEntries(Object.entries(body))
      : {}
  } catch {
    return {}
  }
}

const CHECK_MS = 2_000

/** Polls the service while it does not answer. */
export function watchService(): void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const check = () => {
    timer = undefined
    send({ method: 'GET', path: '/health/live' }).catch(() => plan())
  }
  const plan = () => {
    if (!online.get()) timer ??= setTimeout(check, CHECK_MS)
  }
  online.subscribe(plan)
}
