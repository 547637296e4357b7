// How often whom may try what under /auth. Everything is counted before the library is asked, whether or not there is
// such an account: a limit must not tell either.
import { hash } from 'node:crypto'
import { isIP } from 'node:net'
import { addressOf } from '../auth/client.ts'
import { ipv6Groups } from '../drivers/address.ts'
import type { Allowance, Attempts } from '../auth/attempt-counter.ts'
import { cookiesOf } from './cookies.ts'
import type { KnownDevices } from './known-device.ts'
import { PATHS, SIGN_IN, SIGN_UP } from './paths.ts'

/** Hashing a password costs about 50 ms of a core: what one address may make us spend. */
const BY_ADDRESS = { limit: 120, windowMs: 60_000 }
/** Guesses at one account from one address, or by one device it knows. */
const BY_ACCOUNT_AND_ADDRESS = { limit: 10, windowMs: 300_000 }
/** Guesses at one account by strangers from everywhere; and by all devices that it knows. */
const BY_ACCOUNT = { limit: 100, windowMs: 3_600_000 }
/**
 * Mails of one kind to one address: asked for from one place, or by one device; and from everywhere. Past a limit no mail
 * is sent, and nobody is told. A window is no longer than a link lives: while strangers have used it up, the mailbox
 * holds a link that works.
 */
const MAILS_BY_ADDRESS = { limit: 5, windowMs: 900_000 }
const MAILS = { limit: 10, windowMs: 3_600_000 }

export interface Try {
  /** `POST /auth/sign-in/email` */
  readonly name: string
  readonly request: Request
  /** Of the body, in lower case. */
  readonly email: string | undefined
  /** Mails are really sent: a sign-up then costs somebody a mail. */
  readonly mailIsOn: boolean
}

export interface Counted {
  /** False: the mails to this address are used up, so nothing is done. The answer is the same. */
  readonly mails: boolean
  /** Done once the password was right. */
  settle(): Promise<void>
}

/** Counts a try. Throws RATE_LIMITED past a limit. `sessionCookie`: the name under which the library looks for a session. */
export function openThrottle(
  tries: Attempts,
  devices: KnownDevices,
  sessionCookie: string,
): (tried: Try) => Promise<Counted> {
  return async (tried) => {
    const guesses = guessesOf(tried, devices, sessionCookie)
    await tries.spend([...costsOf(tried), ...guesses])
    const mails = await tries.allows(mailsOf(tried, devices))
    // A device that was right gives no other device its tries back.
    const settled = guesses.map(({ key }) => key).filter((key) => !key.startsWith('devices '))
    return { mails, settle: () => tries.clear(settled) }
  }
}

/** What it makes us spend, right or wrong. Counted by who asks, never by whose address it is. */
function costsOf({ name, request }: Try): readonly Allowance[] {
  return PATHS.get(name)?.costly === true ? [{ key: `address ${networkOf(addressOf(request))}`, ...BY_ADDRESS }] : []
}

/** Each kind of mail by itself: whoever asks for sign-ups must not use up the links for a new password. */
function mailsOf({ name, request, email, mailIsOn }: Try, devices: KnownDevices): readonly Allowance[] {
  if (PATHS.get(name)?.mails !== true || email === undefined || (!mailIsOn && name === SIGN_UP)) return []
  const device = devices.of(request, email)
  const [from, all] =
    device === null ? [networkOf(addressOf(request)), 'everywhere'] : [`device ${device}`, 'known devices']
  return [
    { key: `mail ${name} ${from} ${email}`, ...MAILS_BY_ADDRESS },
    { key: `mail ${name} ${all} ${email}`, ...MAILS },
  ]
}

/** Whose password it guesses, taken back once that was right. */
function guessesOf({ name, request, email }: Try, devices: KnownDevices, sessionCookie: string): readonly Allowance[] {
  if (PATHS.get(name)?.asksPassword === true) {
    const session = sessionOf(request, sessionCookie)
    return session === null ? [] : [{ key: `session ${session}`, ...BY_ACCOUNT_AND_ADDRESS }]
  }
  if (name !== SIGN_IN || email === undefined) return []
  const device = devices.of(request, email)
  return device === null
    ? [
        { key: `pair ${networkOf(addressOf(request))} ${email}`, ...BY_ACCOUNT_AND_ADDRESS },
        { key: `account ${email}`, ...BY_ACCOUNT },
      ]
    : [
        { key: `device ${device} ${email}`, ...BY_ACCOUNT_AND_ADDRESS },
        // Whoever knew the password once may have made many devices known.
        { key: `devices ${email}`, ...BY_ACCOUNT },
      ]
}

/**
 * The session that the library will ask for, as a hash; null for none. Never a second one beside it: its tries would be
 * taken back as well.
 */
export function sessionOf(request: Request, sessionCookie: string): string | null {
  const [token = ''] = cookiesOf(request).get(sessionCookie)?.split('.') ?? []
  return token === '' ? null : hash('sha256', token)
}

/** One customer has one address of IPv4, but 2^64 of IPv6: those count as one. */
export function networkOf(told: string): string {
  // Some proxies tell the port as well, which is another one each time.
  const address = /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(told)?.[1] ?? /^\[([^\]]+)\](?::\d+)?$/.exec(told)?.[1] ?? told
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  if (isIP(address) !== 6) return address
  const groups = ipv6Groups(address.replace(/%.*$/, ''))
  return groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')
}
