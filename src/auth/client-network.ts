// Rate limits count by network. An IPv6 network has 2^64 addresses with the same first 64 bits, and usually one
// customer. An IPv4 network is one address.
import { isIP } from 'node:net'
import { ipv6Groups } from '../drivers/allowed-addresses.ts'

export function networkOf(given: string): string {
  const { address, groups } = partsOf(given)
  return groups === null ? address : groups.slice(0, 4).join(':')
}

/** Returns the addresses that one customer can easily get: the first 48 bits of an IPv6 address, or 24 of IPv4. */
export function blockOf(given: string): string {
  const { address, groups } = partsOf(given)
  return groups === null ? address.replace(/\.\d+$/, '') : groups.slice(0, 3).join(':')
}

function partsOf(given: string): { readonly address: string; readonly groups: readonly string[] | null } {
  // Some proxies add a port, which changes with each request.
  const address = /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(given)?.[1] ?? /^\[([^\]]+)\](?::\d+)?$/.exec(given)?.[1] ?? given
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return { address: mapped, groups: null }
  if (isIP(address) !== 6) return { address, groups: null }
  const groups = ipv6Groups(address.replace(/%.*$/, ''))
  return { address, groups: groups.map((group) => group.toString(16)) }
}
