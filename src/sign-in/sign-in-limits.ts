// Rate limits under /auth. An attempt is counted before the library sees it, even for an unknown account, so that a
// limit does not reveal whether an account exists.
import { hash } from 'node:crypto'
import { openFairLimit } from '../concurrency-limit.ts'
import { AppError } from '../errors.ts'
import { addressOf } from '../auth/client-name-and-address.ts'
import { blockOf, networkOf } from '../auth/client-network.ts'
import type { Allowance, Attempts } from '../auth/attempt-counter.ts'
import { cookiesOf } from './cookies.ts'
import type { KnownDevices } from './known-browser-cookie.ts'
import { PATHS, SIGN_IN, SIGN_UP } from './allowed-paths.ts'

/**
 * How many requests may hash passwords at the same time: for one network or known account, for one block of networks,
 * and in this process. A hash takes a thread of libuv's pool, which has four. The others stay free for files, SQLite and
 * connections to PostgreSQL.
 */
const HASHING = { who: 1, block: 1, all: 2 }
const HASHING_WAIT_MS = 10_000
const HASHING_RETRY_SECONDS = 5

/** A hash takes about 50 ms of CPU time. This limits the cost that one network address can cause. */
const BY_ADDRESS = { limit: 120, windowMs: 60_000 }
/** Guesses of one account's password from one network address, from one known device, or in one session. */
const BY_ACCOUNT_AND_ADDRESS = { limit: 10, windowMs: 300_000 }
/**
 * Guesses of one account's password from all unknown devices. Known devices do not count here, because they once knew
 * the password.
 */
const BY_ACCOUNT = { limit: 100, windowMs: 3_600_000 }
/**
 * Mails of one kind to one e-mail address, requested from one network or device, and from all. If the limit is reached,
 * no mail is sent, but the answer is the same. A link is valid for at least as long as the limit lasts. So if others
 * have used up the limit, there is already a working link in the mailbox.
 */
const MAILS_BY_ADDRESS = { limit: 5, windowMs: 900_000 }
const MAILS = { limit: 10, windowMs: 3_600_000 }

export interface Attempt {
  /** The method and path, for example `POST /auth/sign-in/email`. */
  readonly name: string
  readonly request: Request
  /** The e-mail address in the body, in lower case. */
  readonly email: string | undefined
  /** If mail is on, a sign-up sends a mail. */
  readonly mailIsOn: boolean
}

export interface Counted {
  /** Whether the request has the cookie of a known device of the account with this e-mail address. */
  readonly isKnownDevice: boolean
  /**
   * False if too many mails were requested for this e-mail address. Then no mail is sent, but the answer is the same.
   */
  readonly mails: boolean
  /** Resets the counts of guesses. Call this after a correct password. */
  settle(): Promise<void>
}

/**
 * Returns a function that counts an attempt, and throws RATE_LIMITED if there were too many. `sessionCookie` is the
 * library's name of the cookie.
 */
export function openThrottle(
  tries: Attempts,
  devices: KnownDevices,
  sessionCookie: string,
): (attempt: Attempt) => Promise<Counted> {
  return async (attempt) => {
    const { request, email } = attempt
    const device = email === undefined ? null : await devices.of(request, email)
    const guesses = guessesOf(attempt, device, sessionCookie)
    await tries.spend([...costsOf(attempt), ...guesses])
    const mails = await tries.allows(mailsOf(attempt, device))
    return { isKnownDevice: device !== null, mails, settle: () => tries.clear(guesses.map(({ key }) => key)) }
  }
}

/**
 * Returns a function that waits until a request may hash a password. It returns null if the request hashes none, and
 * throws OVERLOADED after a long wait. The request may hash until the result is disposed. `known` is the account of the
 * known device or session that sent the request, or null. Strangers and known accounts wait in separate lanes, so
 * strangers with any number of networks cannot keep people from signing in on their own devices. In a lane, blocks of
 * networks take turns, so neither many accounts nor many networks of one block get more turns than another block.
 */
export function openHashing(): (name: string, request: Request, known: string | null) => Promise<Disposable | null> {
  const [people, blocks] = [
    openFairLimit({ each: HASHING.who, all: Infinity }),
    openFairLimit({ each: HASHING.block, all: HASHING.all }),
  ]
  return async (name, request, known) => {
    if (PATHS.get(name)?.hashes !== true) return null
    const address = addressOf(request)
    const [who, lane] = known === null ? [`network ${networkOf(address)}`, 'strangers'] : [`account ${known}`, 'known']
    const until = performance.now() + HASHING_WAIT_MS
    const { signal } = request
    const turn = await people.take(who, { waitMs: HASHING_WAIT_MS, signal })
    if (turn === null) throw tooManyHashes()
    try {
      const slot = await blocks.take(`${lane} ${blockOf(address)}`, { waitMs: until - performance.now(), signal, lane })
      if (slot === null) throw tooManyHashes()
      return {
        [Symbol.dispose]() {
          slot[Symbol.dispose]()
          turn[Symbol.dispose]()
        },
      }
    } catch (error) {
      turn[Symbol.dispose]()
      throw error
    }
  }
}

function tooManyHashes(): AppError {
  const retryAfter = HASHING_RETRY_SECONDS
  return new AppError('OVERLOADED', `Too many passwords are being checked. Wait ${retryAfter} s.`, {
    extra: { retryAfter },
  })
}

/** The cost is counted by network address, never by account. */
function costsOf({ name, request }: Attempt): readonly Allowance[] {
  return PATHS.get(name)?.costly === true ? [{ key: `address: ${networkOf(addressOf(request))}`, ...BY_ADDRESS }] : []
}

/** Each kind of mail has its own limit, so that sign-ups cannot use up the mails for password resets. */
function mailsOf({ name, request, email, mailIsOn }: Attempt, device: string | null): readonly Allowance[] {
  if (PATHS.get(name)?.mails !== true || email === undefined || (!mailIsOn && name === SIGN_UP)) return []
  const [from, all] =
    device === null ? [networkOf(addressOf(request)), 'everywhere'] : [`device ${device}`, 'known devices']
  return [
    { key: `mail by: ${name} ${from} ${email}`, ...MAILS_BY_ADDRESS },
    { key: `mail: ${name} ${all} ${email}`, ...MAILS },
  ]
}

function guessesOf(
  { name, request, email }: Attempt,
  device: string | null,
  sessionCookie: string,
): readonly Allowance[] {
  if (PATHS.get(name)?.asksPassword === true) {
    const session = sessionOf(request, sessionCookie)
    return session === null ? [] : [{ key: `session: ${session}`, ...BY_ACCOUNT_AND_ADDRESS }]
  }
  if (name !== SIGN_IN || email === undefined) return []
  return device === null
    ? [
        { key: `pair: ${networkOf(addressOf(request))} ${email}`, ...BY_ACCOUNT_AND_ADDRESS },
        { key: `account: ${email}`, ...BY_ACCOUNT },
      ]
    : [{ key: `device: ${device} ${email}`, ...BY_ACCOUNT_AND_ADDRESS }]
}

/**
 * Returns the hash of the session that the library will use, or null. If there is a second session cookie, it is
 * ignored. Otherwise a correct password could reset the limits of another session.
 */
export function sessionOf(request: Request, sessionCookie: string): string | null {
  const [token = ''] = cookiesOf(request).get(sessionCookie)?.split('.') ?? []
  return token === '' ? null : hash('sha256', token)
}
