// How often whom may try what under /auth. Everything is counted before the library is asked, whether or not there is
// such an account: a limit must not tell either.
import { hash } from 'node:crypto'
import { isIP } from 'node:net'
import { attempts } from './attempts.ts'
import type { KnownDevices } from './known-device.ts'
import { PATHS } from './paths.ts'

/** Hashing a password costs about 50 ms of a core: what one address may make us spend. */
const BY_ADDRESS = { limit: 120, windowMs: 60_000 }
/** Guesses at one account from one address, or by one device it knows; and by strangers from everywhere. */
const BY_ACCOUNT_AND_ADDRESS = { limit: 10, windowMs: 300_000 }
const BY_ACCOUNT = { limit: 100, windowMs: 3_600_000 }
/** Mails to one address, asked for from one address; and from everywhere. */
const MAILS_BY_ADDRESS = { limit: 5, windowMs: 900_000 }
const MAILS = { limit: 30, windowMs: 3_600_000 }

export interface Try {
  /** `POST /auth/sign-in/email` */
  readonly name: string
  readonly request: Request
  /** Of the body, in lower case. */
  readonly email: string | undefined
  /** Mails are really sent: a sign-up then costs somebody a mail. */
  readonly mailIsOn: boolean
}

/** Counts a try. Throws RATE_LIMITED past a limit; answers with what is done once the password was right. */
export function openThrottle(now: () => number, devices: KnownDevices): (tried: Try) => () => void {
  const tries = attempts(now)
  return ({ name, request, email, mailIsOn }) => {
    const path = PATHS.get(name)
    const network = networkOf(request.headers.get('x-vitrine-client') ?? '')
    const right: string[] = []
    if (path?.costly === true) tries.spend(`address ${network}`, BY_ADDRESS)
    if (path?.mails === true && email !== undefined && (mailIsOn || name !== 'POST /auth/sign-up/email')) {
      tries.spend(`mail ${network} ${email}`, MAILS_BY_ADDRESS)
      tries.spend(`mail ${email}`, MAILS)
    }
    if (path?.asksPassword === true) {
      for (const session of sessionsOf(request)) {
        tries.spend(session, BY_ACCOUNT_AND_ADDRESS)
        right.push(session)
      }
    }
    if (name === 'POST /auth/sign-in/email' && email !== undefined) {
      const device = devices.of(request, email)
      if (device === null) {
        tries.spend(`pair ${network} ${email}`, BY_ACCOUNT_AND_ADDRESS)
        tries.spend(`account ${email}`, BY_ACCOUNT)
        right.push(`pair ${network} ${email}`, `account ${email}`)
      } else {
        tries.spend(`device ${device} ${email}`, BY_ACCOUNT_AND_ADDRESS)
        right.push(`device ${device} ${email}`)
      }
    }
    return () => {
      for (const key of right) tries.clear(key)
    }
  }
}

/** Each that the cookies name, so that no false one beside it hides the right one. */
function sessionsOf(request: Request): string[] {
  const sent = request.headers.get('cookie') ?? ''
  return [...sent.matchAll(/vitrine\.session_token=([^;.]*)/g)].map(
    ([, token = '']) => `session ${hash('sha256', token)}`,
  )
}

/** One customer has one address of IPv4, but 2^64 of IPv6: those count as one. */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  if (isIP(address) !== 6) return address
  // The library of addresses of URLs writes every form of one alike; the zone is no part of it.
  const written = URL.parse(`http://[${address.replace(/%.*$/, '')}]`)?.hostname.slice(1, -1) ?? address
  const [head = '', tail] = written.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - left.length - right.length }, () => '0')
  return [...left, ...zeros, ...right].slice(0, 4).join(':')
}
