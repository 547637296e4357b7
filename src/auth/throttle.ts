// How often whom may try what under /auth. Everything is counted before the library is asked, whether or not there is
// such an account: a limit must not tell either.
import { hash } from 'node:crypto'
import { isIP } from 'node:net'
import type { Allowance, Attempts } from './attempts.ts'
import { cookiesOf } from './cookies.ts'
import type { KnownDevices } from './known-device.ts'
import { PATHS } from './paths.ts'

/** Hashing a password costs about 50 ms of a core: what one address may make us spend. */
const BY_ADDRESS = { limit: 120, windowMs: 60_000 }
/** Guesses at one account from one address, or by one device it knows; and by strangers from everywhere. */
const BY_ACCOUNT_AND_ADDRESS = { limit: 10, windowMs: 300_000 }
const BY_ACCOUNT = { limit: 100, windowMs: 3_600_000 }
/** Mails to one address, asked for from one address; and from everywhere. */
const MAILS_BY_ADDRESS = { limit: 10, windowMs: 900_000 }
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

/**
 * Counts a try. Throws RATE_LIMITED past a limit; answers with what is done once the password was right. `sessionCookie`: the
 * name under which the library looks for a session.
 */
export function openThrottle(
  tries: Attempts,
  devices: KnownDevices,
  sessionCookie: string,
): (tried: Try) => Promise<() => Promise<void>> {
  return async (tried) => {
    const guesses = guessesOf(tried, devices, sessionCookie)
    await tries.spend([...costsOf(tried), ...guesses])
    return () => tries.clear(guesses.map(({ key }) => key))
  }
}

/** What it makes us spend, right or wrong. */
function costsOf({ name, request, email, mailIsOn }: Try): readonly Allowance[] {
  const path = PATHS.get(name)
  const network = networkOfCaller(request)
  const mails = path?.mails === true && (mailIsOn || name !== 'POST /auth/sign-up/email') ? email : undefined
  return [
    ...(path?.costly === true ? [{ key: `address ${network}`, ...BY_ADDRESS }] : []),
    ...(mails === undefined
      ? []
      : [
          { key: `mail ${network} ${mails}`, ...MAILS_BY_ADDRESS },
          { key: `mail ${mails}`, ...MAILS },
        ]),
  ]
}

/** Whose password it guesses, taken back once that was right. */
function guessesOf({ name, request, email }: Try, devices: KnownDevices, sessionCookie: string): readonly Allowance[] {
  if (PATHS.get(name)?.asksPassword === true) {
    // Of the one session that the library will ask for: of a second one beside it the tries would be taken back as well.
    const [token = ''] = cookiesOf(request).get(sessionCookie)?.split('.') ?? []
    return token === '' ? [] : [{ key: `session ${hash('sha256', token)}`, ...BY_ACCOUNT_AND_ADDRESS }]
  }
  if (name !== 'POST /auth/sign-in/email' || email === undefined) return []
  const device = devices.of(request, email)
  if (device !== null) return [{ key: `device ${device} ${email}`, ...BY_ACCOUNT_AND_ADDRESS }]
  return [
    { key: `pair ${networkOfCaller(request)} ${email}`, ...BY_ACCOUNT_AND_ADDRESS },
    { key: `account ${email}`, ...BY_ACCOUNT },
  ]
}

function networkOfCaller(request: Request): string {
  return networkOf(request.headers.get('x-vitrine-client') ?? '')
}

/** One customer has one address of IPv4, but 2^64 of IPv6: those count as one. */
export function networkOf(told: string): string {
  // Some proxies tell the port as well, which is another one each time.
  const address = /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(told)?.[1] ?? /^\[([^\]]+)\](?::\d+)?$/.exec(told)?.[1] ?? told
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
