// Finds the addresses of a host that a caller named. The system's function for this (getaddrinfo) cannot be cancelled,
// and libuv runs only two of its calls at a time for the whole process. If both calls waited for a silent name server,
// no other look-up could run. So callers' names must never take both places.
import type { LookupAddress } from 'node:dns'
import { lookup, Resolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'

/** The limits of our own resolver, which asks the name server directly, without a thread. */
const RESOLVER = { timeout: 2_000, tries: 2 }
const RESOLVER_MS = 4_000
/** How long a caller waits for the system's function. The function itself cannot be stopped. */
const SYSTEM_MS = 5_000

/**
 * The files and servers of the system. Tests have their own. Without `servers`, the name servers of the system are
 * used.
 */
interface Machine {
  readonly servers?: readonly string[]
  readonly hosts: string
  readonly resolver: string
}
const THIS: Machine = { hosts: '/etc/hosts', resolver: '/etc/resolv.conf' }

/** The last call of the system's function. The next call waits for it, so one of the two places stays free. */
let running: Promise<unknown> = Promise.resolve()

/**
 * Finds the addresses as other programs of this machine do. Only for hosts that the operator trusts, and for systems on
 * which the name server depends on the domain (with a VPN, for example). Only the system's function knows which name
 * server that is.
 */
export async function lookUpTrusted(host: string): Promise<LookupAddress[]> {
  return await lookup(host, { all: true, order: 'verbatim' })
}

/**
 * Asks only the name server, without /etc/hosts and search domains. IPv4 addresses come first. Throws an error with the
 * code EAI_AGAIN if there is no answer in time, and the resolver's error if the name has no address.
 */
export async function lookUpForStranger(host: string, servers?: readonly string[]): Promise<LookupAddress[]> {
  return await atNameServer(host, [host], servers)
}

/**
 * Finds the addresses as the system does: first in /etc/hosts, then at the name server, with the search domains. If the
 * name server knows none, asks the system's function, which may know other sources. It is asked for one name at a time.
 * Throws an error with the code EAI_AGAIN if there is no answer in time.
 */
export async function lookUpForMember(host: string, machine: Machine = THIS): Promise<LookupAddress[]> {
  const known = addressesIn(await textOf(machine.hosts), host)
  if (known.length > 0) return known
  try {
    return await atNameServer(host, searched(await textOf(machine.resolver), host), machine.servers)
  } catch (error) {
    if (codeOf(error) === 'EAI_AGAIN') throw error
    return await oneAtATime(host)
  }
}

/** Asks for one name after another, and returns the addresses of the first name that has any. */
async function atNameServer(
  host: string,
  names: readonly string[],
  servers: readonly string[] | undefined,
): Promise<LookupAddress[]> {
  const resolver = new Resolver(RESOLVER)
  if (servers !== undefined) resolver.setServers(servers)
  let isOver = false
  const late = setTimeout(() => {
    isOver = true
    resolver.cancel()
  }, RESOLVER_MS)
  try {
    let last: unknown
    for (const name of names) {
      const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
      const found = [...entries(four, 4), ...entries(six, 6)]
      if (found.length > 0) return found
      const errors = [four, six].flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
      if (isOver || errors.some(isLate)) throw notNow(host)
      last = errors[0]
    }
    throw last
  } finally {
    clearTimeout(late)
  }
}

async function oneAtATime(host: string): Promise<LookupAddress[]> {
  let isLate = false
  const found = running.then(() => (isLate ? [] : lookup(host, { all: true, order: 'verbatim' })))
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

/** Returns an empty text if the system has no such file. */
async function textOf(file: string): Promise<string> {
  return await readFile(file, 'utf8').catch(() => '')
}

/** Returns the addresses of a host in the text of /etc/hosts (hosts(5)). */
function addressesIn(hosts: string, host: string): LookupAddress[] {
  const wanted = bare(host)
  return hosts.split('\n').flatMap((line) => {
    const [address = '', ...names] = wordsOf(line)
    const family = isIP(address)
    return family !== 0 && names.some((name) => bare(name) === wanted) ? [{ address, family }] : []
  })
}

/**
 * Returns the names to ask for, in the order of resolv.conf(5). A name with few dots is tried with the search domains
 * first.
 */
function searched(resolver: string, host: string): readonly string[] {
  let domains: readonly string[] = []
  let dotsMin = 1
  for (const [keyword, ...words] of resolver.split('\n').map(wordsOf)) {
    if (keyword === 'search' || keyword === 'domain') domains = words
    if (keyword !== 'options') continue
    for (const word of words) dotsMin = Number(/^ndots:(\d{1,2})$/.exec(word)?.[1] ?? dotsMin)
  }
  if (host.endsWith('.')) return [host]
  const parts = domains.filter((domain) => domain !== '.').map((domain) => `${host}.${domain}`)
  return host.split('.').length > dotsMin ? [host, ...parts] : [...parts, host]
}

function wordsOf(line: string): string[] {
  return line
    .replace(/[#;].*/, '')
    .split(/\s+/)
    .filter((word) => word !== '')
}

function bare(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
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

/** The system's function has the same code for a name that cannot be resolved at the moment. */
function notNow(host: string): Error {
  return Object.assign(new Error(`no name server answered in time for ${host}`), { code: 'EAI_AGAIN' })
}
