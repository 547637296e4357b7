// The session of this tab. The access token is only in memory, and the first call in its last minute renews it.
// Concurrent calls share one renewal. If the session ends, calls wait until the person has signed in again.
import { Refused, SignedOut } from './failure.ts'
import { observable } from './observable.ts'
import { send } from './send.ts'
import { onTabMessage, tellTabs } from './other-tabs.ts'

/** A call renews a token that expires within this time. A token with a short life is used for half of its life. */
const EARLY_MS = 60_000
const LIFETIME_MS = 600_000

interface Held {
  readonly jwt: string
  /** In the time of performance.now(), so that a wrong system clock has no effect. */
  readonly until: number
}

/** Why the page asks the person to sign in again: the session ended, or an action needs a recent sign-in. */
export type Asking = 'ended' | 'fresh' | null

export const asking = observable<Asking>(null)

let held: Held | null = null
let renewing: Promise<string> | null = null
/**
 * True from the first access token until a sign-out. If the session ends meanwhile, the person is asked to sign in
 * again, so that unsaved input is not lost.
 */
let wasSignedIn = false
let again: {
  readonly promise: Promise<void>
  readonly resolve: () => void
  readonly reject: (e: Error) => void
} | null = null
let leave: () => void = () => undefined

/** Listens to the other tabs. `onSignedOut` is called after a sign-out in any tab, and shows the sign-in page. */
export function openSession(onSignedOut: () => void): void {
  leave = onSignedOut
  onTabMessage((message) => {
    if (message === 'signed-in') return resume()
    end()
    leave()
  })
}

/**
 * Checks for a session. Sends no request that may be refused, because browsers print refusals as errors in their
 * console. Also returns true if this page has had a session that has ended: the next call notices the end.
 */
export async function hasSession(): Promise<boolean> {
  if (wasSignedIn) return true
  const session: unknown = await (await send({ method: 'GET', path: '/auth/get-session' })).json()
  return session !== null
}

/** Returns a valid access token. Throws SignedOut, or the errors of send(). */
export async function accessToken(signal?: AbortSignal): Promise<string> {
  for (;;) {
    signal?.throwIfAborted()
    if (held !== null && performance.now() < held.until) return held.jwt
    try {
      return await (renewing ??= renew().finally(() => (renewing = null)))
    } catch (error) {
      if (!(error instanceof SignedOut) || !wasSignedIn) throw error
      await askAgain('ended', signal)
    }
  }
}

/** Drops a token that the service refused. */
export function forget(jwt: string): void {
  if (held?.jwt === jwt) held = null
}

/** Drops the token because its session was replaced. */
export function forgetToken(): void {
  held = null
}

async function renew(): Promise<string> {
  const from = performance.now()
  const response = await send({ method: 'GET', path: '/auth/token' }).catch((error: unknown) => {
    throw error instanceof Refused && error.status === 401 ? new SignedOut() : error
  })
  const { token, expiresIn }: { token: string; expiresIn?: number } = await response.json()
  wasSignedIn = true
  const life = expiresIn === undefined ? LIFETIME_MS : expiresIn * 1000
  held = { jwt: token, until: from + Math.max(life - EARLY_MS, life / 2) }
  return token
}

/**
 * Resolves when the person has signed in. Rejects with SignedOut if the person cancels or signs out, and with an
 * AbortError if `signal` is aborted.
 */
export async function askAgain(why: 'ended' | 'fresh', signal?: AbortSignal): Promise<void> {
  if (again === null) {
    again = Promise.withResolvers<void>()
    again.promise.catch(() => undefined)
    asking.set(why)
  }
  const { promise } = again
  if (signal === undefined) return promise
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(new DOMException('Aborted', 'AbortError'))
  signal.addEventListener('abort', abort, { once: true })
  try {
    await Promise.race([promise, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** Lets waiting calls continue after the person has signed in, in this or another tab. */
function resume(): void {
  held = null
  const waiting = again
  again = null
  asking.set(null)
  waiting?.resolve()
}

/** Lets waiting calls fail. The session does not change. */
export function giveUp(): void {
  const waiting = again
  again = null
  asking.set(null)
  waiting?.reject(new SignedOut())
}

/** Must be called after a sign-in in this tab. Lets waiting calls continue, here and in the other tabs. */
export function signedIn(): void {
  resume()
  tellTabs('signed-in')
}

/** Removes the session from memory. Waiting calls fail. */
export function end(): void {
  held = null
  wasSignedIn = false
  giveUp()
}

/** Signs out here and in every other tab. First ends the session in the service. */
export async function signOut(): Promise<void> {
  await send({ method: 'POST', path: '/auth/sign-out', body: {} }).catch((error: unknown) => {
    if (!(error instanceof Refused)) throw error
  })
  end()
  tellTabs('signed-out')
  leave()
}
