// Rate limits count by network. An IPv6 customer has 2^64 addresses, which share their first 64 bits. An IPv4 customer
// usually has one address.
import { isIP } from 'node:net'
import { ipv6Groups } from '../drivers/allowed-addresses.ts'

export function networkOf(given: string): string {
  // Some proxies add a port, which is different each time.
  const address = /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(given)?.[1] ?? /^\[([^\]]+)\](?::\d+)?$/.exec(given)?.[1] ?? given
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  if (isIP(address) !== 6) return address
  const groups = ipv6Groups(address.replace(/%.*$/, ''))
  return groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')
}
