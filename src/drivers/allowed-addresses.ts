// Decides to which addresses a datasource may connect. Vitrine resolves the host name, checks the address, and connects
// to that address. The name is not resolved again, because the second answer could be another address (DNS rebinding).
import { BlockList, connect, isIP, isIPv4, type LookupFunction, type OnReadOpts, type Socket } from 'node:net'
import { callbackify } from 'node:util'
import { AppError } from '../errors.ts'
import { lookUpForMember, lookUpForStranger, lookUpTrusted } from './look-up-host.ts'

export type AddressKind = 'public' | 'private' | 'metadata'

// Metadata services give out credentials of the machine. The first address is that of AWS, GCP, Azure and Oracle. The
// next addresses are those of ECS, EKS, Azure's wire server, Alibaba, Oracle classic, Scaleway and Tencent, in this
// order.
const METADATA_V4 = [
  '169.254.169.254',
  '169.254.170.2',
  '169.254.170.23',
  '168.63.129.16',
  '100.100.100.200',
  '192.0.0.192',
  '169.254.42.42',
  '169.254.0.23',
]
// The metadata services of AWS, EKS, GCP, Scaleway, Oracle and OpenStack, in this order.
const METADATA_V6 = [
  'fd00:ec2::254',
  'fd00:ec2::23',
  'fd20:ce::254',
  'fd00:42::42',
  'fd00:c1::a9fe:a9fe',
  'fe80::a9fe:a9fe',
]
// Networks without public addresses, for example private, loopback, link-local, multicast and reserved networks.
const PRIVATE_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
]
const PRIVATE_V6 = ['::/127', '100::/64', '2001:db8::/32', 'fc00::/7', 'fe80::/9', 'ff00::/8', '5f00::/16']

const RECEIVED_BYTES = 65_536

const metadata = blockList(METADATA_V4, METADATA_V6)
const unroutable = blockList(PRIVATE_V4, PRIVATE_V6)

function blockList(v4: readonly string[], v6: readonly string[]): BlockList {
  const list = new BlockList()
  for (const entry of v4) add(list, entry, 'ipv4', 32)
  for (const entry of v6) add(list, entry, 'ipv6', 128)
  return list
}

function add(list: BlockList, entry: string, family: 'ipv4' | 'ipv6', whole: number): void {
  const [net = '', prefix] = entry.split('/')
  list.addSubnet(net, prefix === undefined ? whole : Number(prefix), family)
}

/**
 * Returns the kind of an IP address. An IPv6 address that contains an IPv4 address has the kind of the IPv4 address. A
 * text that is no address counts as private.
 */
export function addressKind(address: string): AddressKind {
  const plain = address.replace(/%.*$/, '')
  if (isIP(plain) === 0) return 'private'
  const local = isIPv4(plain) ? null : carriedLocally(plain)
  if (local !== null) return local.some((each) => kindIn(each, 'ipv4') === 'metadata') ? 'metadata' : 'private'
  const carried = isIPv4(plain) ? plain : carriedIPv4(plain)
  if (carried !== null) return kindIn(carried, 'ipv4')
  return kindIn(plain, 'ipv6')
}

function kindIn(address: string, family: 'ipv4' | 'ipv6'): AddressKind {
  if (metadata.check(address, family)) return 'metadata'
  return unroutable.check(address, family) ? 'private' : 'public'
}

/**
 * Returns the IPv4 address in an IPv4-mapped, IPv4-translated, IPv4-compatible, NAT64, 6to4 or Teredo address (Teredo
 * inverts its bits). Returns null for other IPv6 addresses.
 */
function carriedIPv4(address: string): string | null {
  const groups = ipv6Groups(address)
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = groups
  if (a === 0 && b === 0 && c === 0 && d === 0 && (e === 0 || e === 0xffff) && (f === 0xffff || f === 0)) {
    // :: and ::1 contain no IPv4 address. They are private, and so are 0.0.0.0 and 0.0.0.1, so the result is right.
    return dotted(g, h)
  }
  if (a === 0x64 && b === 0xff9b) return dotted(g, h)
  if (a === 0x2002) return dotted(b, c)
  if (a === 0x2001 && b === 0) return dotted(g ^ 0xffff, h ^ 0xffff)
  return null
}

/**
 * An address of the local NAT64 prefix 64:ff9b:1::/48 (RFC 8215) contains an IPv4 address after a prefix of 48, 56, 64
 * or 96 bits (RFC 6052). Returns the IPv4 addresses for all these lengths. Returns null for other addresses.
 */
function carriedLocally(address: string): string[] | null {
  const [a, b, c, d = 0, e = 0, f = 0, g = 0, h = 0] = ipv6Groups(address)
  if (a !== 0x64 || b !== 0xff9b || c !== 1) return null
  const after = ((e & 255) << 8) | (f >> 8)
  return [
    dotted(d, after),
    dotted(((d & 255) << 8) | (e & 255), f),
    dotted(after, ((f & 255) << 8) | (g >> 8)),
    dotted(g, h),
  ]
}

function dotted(high: number, low: number): string {
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
}

/** Returns the eight 16-bit groups of a valid IPv6 address. */
export function ipv6Groups(address: string): number[] {
  const hex = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a: string, b: string, c: string, d: string) =>
    [Number(a) * 256 + Number(b), Number(c) * 256 + Number(d)].map((group) => group.toString(16)).join(':'),
  )
  const [head = '', tail] = hex.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length
  return [...left, ...Array<string>(zeros).fill('0'), ...right].map((group) => Number.parseInt(group, 16))
}

/** If the address is not allowed, returns the reason as a sentence. Otherwise returns null. */
export function refusal(address: string, allowPrivateHosts: boolean): string | null {
  const kind = addressKind(address)
  if (kind === 'metadata') return 'The host is an address of a cloud’s metadata service; Vitrine never connects to it.'
  if (kind === 'private' && !allowPrivateHosts)
    return 'The host is a private, loopback or link-local address; the operator can allow such addresses with VITRINE_ALLOW_PRIVATE_HOSTS=1.'
  return null
}

/** All addresses of the host were refused. The message may be shown to the caller. */
export class RefusedAddress extends Error {
  override readonly name = 'RefusedAddress'
}

/**
 * Returns a `lookup` function for a socket, which finds only allowed addresses. Node does not call it if the host is an
 * IP address. On Linux, the names that members choose never take both places for calls of the system's look-up function
 * (look-up-host.ts).
 */
export function checkedLookup(allowPrivateHosts: boolean, namedByStranger = false): LookupFunction {
  const isTrusted = allowPrivateHosts && process.platform !== 'linux'
  const lookUp = namedByStranger ? lookUpForStranger : isTrusted ? lookUpTrusted : lookUpForMember
  const allowedOf = callbackify(async (host: string) => {
    const found = await lookUp(host)
    const allowed = found.filter((entry) => refusal(entry.address, allowPrivateHosts) === null)
    if (allowed.length > 0) return allowed
    throw new RefusedAddress(refusal(found[0]?.address ?? '', allowPrivateHosts) ?? '')
  })
  return (host, options, callback) =>
    allowedOf(host, (error, allowed = []) => {
      const [first] = allowed
      if (first === undefined) callback(error, [])
      else if (options.all === true) callback(null, allowed)
      else callback(null, first.address, first.family)
    })
}

/** Receives bytes from the socket. They are valid only until the next call. */
export type Receive = (bytes: Buffer) => void

/**
 * Opens a TCP connection to an allowed address of the host. With `path`, connects to this Unix socket instead, the end
 * of a tunnel. With `receive`, the socket reads into one reused buffer, passes it to `receive`, and emits no `data`
 * events. Throws AppError DATASOURCE_UNAVAILABLE if the address is refused, the reason of the signal if it aborts, and
 * otherwise the error of the socket.
 */
export async function dial(
  at: {
    readonly host: string
    readonly port: number
    readonly path?: string | null
    /** True if anybody may choose the host, even without an account. */
    readonly namedByStranger?: boolean
  },
  allowPrivateHosts: boolean,
  signal: AbortSignal,
  receive?: Receive,
): Promise<Socket> {
  signal.throwIfAborted()
  const path = at.path ?? null
  if (path === null && isIP(at.host) !== 0) refuse(refusal(at.host, allowPrivateHosts))
  const socket = connect({
    ...(path === null ? { host: at.host, port: at.port } : { path }),
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
    ...(receive === undefined ? {} : { onread: intoOneBuffer(receive) }),
    lookup: checkedLookup(allowPrivateHosts, at.namedByStranger),
  })
  try {
    await connected(socket, signal)
    if (path === null) refuse(refusal(socket.remoteAddress ?? '', allowPrivateHosts))
    return socket
  } catch (error) {
    socket.destroy()
    if (error instanceof RefusedAddress) refuse(error.message)
    throw error
  }
}

function intoOneBuffer(receive: Receive): OnReadOpts {
  const buffer = Buffer.allocUnsafeSlow(RECEIVED_BYTES)
  return {
    buffer,
    callback: (length) => {
      receive(buffer.subarray(0, length))
      return true
    },
  }
}

function refuse(sentence: string | null): void {
  if (sentence !== null) throw new AppError('DATASOURCE_UNAVAILABLE', sentence)
}

function connected(socket: Socket, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => done(() => reject(signal.reason))
    const onError = (error: Error): void => done(() => reject(error))
    const onConnect = (): void => done(resolve)
    const done = (settle: () => void): void => {
      signal.removeEventListener('abort', onAbort)
      socket.off('error', onError)
      socket.off('connect', onConnect)
      settle()
    }
    signal.addEventListener('abort', onAbort, { once: true })
    socket.once('error', onError)
    socket.once('connect', onConnect)
  })
}
