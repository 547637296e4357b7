// Finds the addresses of a host that a caller named. The system's function (getaddrinfo) cannot be cancelled, and libuv
// runs two of them at a time for the whole process. So names of callers must not fill these two places: a name server
// that is silent would stop every other look-up.
import type { LookupAddress } from 'node:dns'
import { lookup, Resolver } from 'node:dns/promises'

/** A resolver of its own asks the name server. It ends after this time, and uses no thread. */
const RESOLVER = { timeout: 2_000, tries: 2 }
const RESOLVER_MS = 4_000
/** The time to wait for the system's function, which goes on after this time. */
const SYSTEM_MS = 5_000

/** The last call of the system's function for a caller's name. Only one runs at a time, so the other place stays free. */
let running: Promise<unknown> = Promise.resolve()

/** Finds the addresses as other programs of this machine do. Only for hosts that the operator trusts. */
export async function lookUpTrusted(host: string): Promise<LookupAddress[]> {
  return await lookup(host, { all: true, order: 'verbatim' })
}

/**
 * Finds the addresses at the name server (the tests name their own), with IPv4 addresses first. Knows neither
 * /etc/hosts nor search domains. Throws an error with the code EAI_AGAIN for a late answer, and the resolver's error for
 * a name without addresses.
 */
export async function lookUpForStranger(host: string, servers?: readonly string[]): Promise<LookupAddress[]> {
  const resolver = new Resolver(RESOLVER)
  if (servers !== undefined) resolver.setServers(servers)
  const late = setTimeout(() => resolver.cancel(), RESOLVER_MS)
  try {
    const [four, six] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    const found = [...entries(four, 4), ...entries(six, 6)]
    if (found.length > 0) return found
    const errors = [four, six].flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
    throw errors.some(isLate) ? notNow(host) : errors[0]
  } finally {
    clearTimeout(late)
  }
}

/**
 * Like lookUpForStranger(). If the name server knows no addresses, the system's function decides, which knows /etc/hosts
 * and search domains. Waits until no other caller's name is with the system.
 */
export async function lookUpForMember(host: string, servers?: readonly string[]): Promise<LookupAddress[]> {
  try {
    return await lookUpForStranger(host, servers)
  } catch (error) {
    if (codeOf(error) === 'EAI_AGAIN') throw error
    return await oneAtATime(host)
  }
}

async function oneAtATime(host: string): Promise<LookupAddress[]> {
  let isLate = false
  const found = running.then(() => (isLate ? [] : lookUpTrusted(host)))
  running = found.catch(() => undefined)
  const waited = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    isLate = true
    waited.reject(notNow(host))
  }, SYSTEM_MS)
  try {
    return await Promise.race([found, waited.promise])
  } finally {
    clearTimeout(timer)
  }
}

function entries(answer: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] {
  return answer.status === 'fulfilled' ? answer.value.map((address) => ({ address, family })) : []
}

function isLate(error: unknown): boolean {
  return codeOf(error) === 'ETIMEOUT' || codeOf(error) === 'ECANCELLED'
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

/** The code is the system's for a name that cannot be resolved at the moment. */
function notNow(host: string): Error {
  return Object.assign(new Error(`no name server answered in time for ${host}`), { code: 'EAI_AGAIN' })
}
