// Calls the operations of the contract by name. A wrong name, parameter or field does not compile.
import { routes } from 'virtual:routes'
import { Refused, SignedOut } from './failure.ts'
import { send } from './send.ts'
import { accessToken, askAgain, forget } from './session.ts'
import type { Answer, AuthAnswer, AuthBody, AuthName, Input, OperationName } from './types.ts'

interface AnyInput {
  readonly params?: Readonly<Record<string, string>> | undefined
  readonly query?: Readonly<Record<string, string | number | undefined>> | undefined
  readonly body?: unknown
}

/** Calls an operation. Throws Refused, Unreachable or SignedOut, and an AbortError if the signal is aborted. */
export async function call<N extends OperationName>(
  name: N,
  input: Input<N>,
  signal?: AbortSignal,
): Promise<Answer<N>> {
  const response = await respond(name, input, signal)
  // A 204 has no body, and its type is null.
  if (response.status === 204) return JSON.parse('null')
  return response.json()
}

/** Returns the response unchanged, for exports. */
export async function respond(name: OperationName, input: AnyInput, signal?: AbortSignal): Promise<Response> {
  const [method, path] = routes[name] ?? missing(name)
  return authorized({ method, path: addressOf(path, input), body: input.body, signal })
}

/**
 * Sends a request with an access token. If the service refuses the token or requires a recent sign-in, retries once
 * with a new token.
 */
async function authorized(request: Parameters<typeof send>[0]): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    const jwt = await accessToken(request.signal)
    try {
      return await send({ ...request, headers: { ...request.headers, authorization: `Bearer ${jwt}` } })
    } catch (error) {
      if (!(error instanceof Refused) || attempt > 1) throw error
      if (error.code === 'REAUTHENTICATION_REQUIRED') await askOnce(error, request.signal)
      else if (error.status !== 401) throw error
      forget(jwt)
    }
  }
}

/**
 * Asks the person to sign in again, because some actions, such as deletions, need a recent sign-in. If the person does
 * not sign in, throws the refusal.
 */
async function askOnce(refusal: Refused, signal: AbortSignal | undefined): Promise<void> {
  await askAgain('fresh', signal).catch((error: unknown) => {
    throw error instanceof SignedOut ? refusal : error
  })
}

/** Calls a path under /auth, which uses the session cookie. */
export async function auth<N extends AuthName>(
  name: N,
  body?: AuthBody<N>,
  signal?: AbortSignal,
): Promise<AuthAnswer<N>> {
  const [method = '', path = ''] = name.split(' ')
  const request = { method, path, body, signal }
  const response = await send(request).catch(async (error: unknown) => {
    if (!(error instanceof Refused) || error.code !== 'REAUTHENTICATION_REQUIRED') throw error
    await askOnce(error, signal)
    return send(request)
  })
  return response.json()
}

function addressOf(path: string, { params = {}, query = {} }: AnyInput): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value))
  return search.size === 0 ? filled : `${filled}?${search.toString()}`
}

function missing(name: string): never {
  throw new Error(`the contract has no operation ${name}`)
}
