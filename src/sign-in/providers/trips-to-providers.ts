// The providers of this installation, and sign-ins in progress there (“trips”). A trip is in an encrypted cookie, so
// only this browser can complete it, once and within ten minutes.
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { requestIdOf } from '../../auth/client-name-and-address.ts'
import type { Config, Provider } from '../../config.ts'
import { notFound } from '../../errors.ts'
import { isLoopbackName } from '../../host-names.ts'
import type { Transport } from '../../outbound-request.ts'
import type { Secrets } from '../../secrets.ts'
import { sealedCookie, type SealedCookie } from '../sealed-cookie.ts'
import { askerOf } from './ask-provider.ts'
import type { Flow } from './provider-flow.ts'
import { problemOf, providerRefusal } from './provider-identity.ts'

const Trip = z.object({
  provider: z.enum(['github', 'google', 'oidc']),
  redirectUri: z.string(),
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  /** The path of this service that the person wanted to open. */
  target: z.string(),
  remember: z.boolean(),
  /** The session of a person who connects a provider. Null for a sign-in. */
  connects: z.string().nullable(),
  setupToken: z.string().exactOptional(),
  inviteToken: z.string().exactOptional(),
})
export type HeldTrip = z.infer<typeof Trip>

const TRIP_SECONDS = 600

export interface Providers {
  readonly all: readonly Provider[]
  /** Throws NOT_FOUND if the provider is not configured. */
  named(id: string): Provider
  flowOf(provider: Provider): Promise<Flow>
  readonly trips: SealedCookie<HeldTrip>
  readonly warn: (detail: object, message: string) => void
}

export interface ProvidersDeps {
  readonly config: Pick<Config, 'providers' | 'allowPrivateHosts'>
  readonly secrets: Pick<Secrets, 'derive'>
  readonly secure: boolean
  readonly now: () => number
  /** Tests replace the connections to providers. */
  readonly transport?: Partial<Transport>
  readonly log?: { warn?(detail: object, message: string): void }
}

export function openProviders(deps: ProvidersDeps): Providers {
  const { config, secrets, secure, now, transport, log } = deps
  const { allowPrivateHosts } = config
  const flows = new Map<Provider['id'], Promise<Flow>>()
  /** The code for a provider is loaded at its first sign-in. */
  const open = async (provider: Provider): Promise<Flow> => {
    const ask = askerOf(provider, { allowPrivateHosts, ...(transport === undefined ? {} : { transport }) })
    if (provider.id === 'github') return (await import('./github.ts')).gitHubFlow(provider, ask)
    return (await import('./oidc.ts')).oidcFlow(provider, ask, now)
  }
  return {
    all: config.providers,
    named(id) {
      const found = config.providers.find((provider) => provider.id === id)
      if (found === undefined) throw notFound()
      return found
    },
    flowOf(provider) {
      const flow = flows.get(provider.id) ?? open(provider)
      flows.set(provider.id, flow)
      return flow
    },
    trips: sealedCookie({ secrets, name: 'trip', schema: Trip, seconds: TRIP_SECONDS, secure, now }),
    warn: (detail, message) => log?.warn?.(detail, message),
  }
}

export type Destination = Pick<HeldTrip, 'target' | 'remember' | 'connects' | 'setupToken' | 'inviteToken'>

/** Returns the URL at the provider, and the cookie. Throws SIGN_IN_REFUSED if the provider does not answer. */
export async function startTrip(
  { providers, config, origin }: StartDeps,
  request: Request,
  provider: Provider,
  destination: Destination,
): Promise<{ readonly url: string; readonly cookie: string }> {
  const random = () => randomBytes(32).toString('base64url')
  const redirectUri = `${originFor(config, request, origin)}/auth/callback/${provider.id}`
  const trip = {
    ...destination,
    provider: provider.id,
    redirectUri,
    state: random(),
    nonce: random(),
    verifier: random(),
  }
  try {
    const flow = await providers.flowOf(provider)
    const url = await flow.authorizationUrl(trip)
    return { url, cookie: await providers.trips.set(trip) }
  } catch (error) {
    const detail = { provider: provider.id, reason: problemOf(error), requestId: requestIdOf(request) }
    providers.warn(detail, 'a sign-in provider does not answer')
    throw providerRefusal('UNAVAILABLE', error)
  }
}

interface StartDeps {
  readonly providers: Providers
  readonly config: Pick<Config, 'publicUrl' | 'loopback'>
  readonly origin: () => string
}

/** On loopback, people may use any name of this machine, and a cookie belongs to one name. */
function originFor({ publicUrl, loopback }: StartDeps['config'], request: Request, origin: () => string): string {
  const requested = new URL(request.url)
  if (publicUrl === null && loopback && isLoopbackName(requested.hostname)) return requested.origin
  return publicUrl ?? origin()
}

export function isBack(trip: HeldTrip | null, provider: string, state: string | undefined): trip is HeldTrip {
  if (trip === null || trip.provider !== provider || state === undefined) return false
  const [sent, wanted] = [Buffer.from(state), Buffer.from(trip.state)]
  return sent.length === wanted.length && timingSafeEqual(sent, wanted)
}
