// Rate limits under /auth. An attempt is counted before the account is looked up, so that a limit does not reveal
// whether the account exists.
import { hash } from 'node:crypto'
import { openFairLimit, type FairLimit } from '../concurrency-limit.ts'
import { AppError } from '../errors.ts'
import { addressOf } from '../auth/client-name-and-address.ts'
import { blockOf, networkOf } from '../auth/client-network.ts'
import type { Allowance, Attempts } from '../auth/attempt-counter.ts'
import { cookiesOf } from './cookies.ts'
import type { KnownDevices } from './known-browser-cookie.ts'
import { PATHS, SIGN_IN, SIGN_UP } from './allowed-paths.ts'

/**
 * Concurrent hashes per network or known account, per network, per block of networks, and in this process. Each
 * occupies one of the four threads of libuv's pool. The other threads stay free for files, SQLite and connections to
 * PostgreSQL.
 */
const HASHING = { who: 1, network: 1, block: 1, all: 2 }
const HASHING_WAIT_MS = 10_000
const HASHING_RETRY_SECONDS = 5

/** Limits the CPU time that one network can cause. A hash takes about 50 ms. */
const BY_ADDRESS = { limit: 120, windowMs: 60_000 }
/** Guesses of one account's password, from one network, one known device or one session. */
const BY_ACCOUNT_AND_ADDRESS = { limit: 10, windowMs: 300_000 }
/** Guesses from all unknown devices. A known device is not counted here, because it once sent the correct password. */
const BY_ACCOUNT = { limit: 100, windowMs: 3_600_000 }
/**
 * Mails of one kind to one e-mail address: requests from one network or device, and from all. A link is valid at least
 * as long as the limit lasts, so the owner already has a working link even if strangers used up the limit.
 */
const MAILS_BY_ADDRESS = { limit: 5, windowMs: 900_000 }
const MAILS = { limit: 10, windowMs: 3_600_000 }

export interface Attempt {
  /** The method and path, for example `POST /auth/sign-in/email`. */
  readonly name: string
  readonly request: Request
  /** The e-mail address in the body, in lower case. */
  readonly email: string | undefined
  readonly mailIsOn: boolean
}

export interface Counted {
  /** Whether the request has the cookie of a known device of the account with this e-mail address. */
  readonly isKnownDevice: boolean
  /** False if too many mails were requested for this e-mail address. Then send no mail, and give the same answer. */
  readonly mails: boolean
  /** Resets the counts of guesses after a correct password. */
  settle(): Promise<void>
}

/**
 * The returned function throws RATE_LIMITED after too many attempts. `sessionCookie` is the name of the library's
 * cookie.
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
 * Returns a function that waits for a turn to hash a password. Disposing the result ends the turn. Returns null if the
 * request hashes no password, and throws OVERLOADED after a long wait. `known` is the account of the known device or
 * session that sent the request, or null. Known and unknown senders have separate queues, so that strangers cannot
 * delay people on their own devices. In a queue, blocks of networks take turns, and so do the networks of a block.
 */
export function openHashing(): (name: string, request: Request, known: string | null) => Promise<Disposable | null> {
  const [people, networks, blocks] = [
    openFairLimit({ each: HASHING.who, all: Infinity }),
    openFairLimit({ each: HASHING.network, all: Infinity }),
    openFairLimit({ each: HASHING.block, all: HASHING.all }),
  ]
  return async (name, request, known) => {
    if (PATHS.get(name)?.hashes !== true) return null
    const address = addressOf(request)
    const [who, lane] = known === null ? [`network ${networkOf(address)}`, 'strangers'] : [`account ${known}`, 'known']
    const until = performance.now() + HASHING_WAIT_MS
    const turns: Disposable[] = []
    const end = () => {
      for (const turn of turns.toReversed()) turn[Symbol.dispose]()
    }
    const take = async (limit: FairLimit, key: string) => {
      const turn = await limit.take(key, { waitMs: until - performance.now(), signal: request.signal, lane })
      if (turn === null) throw tooManyHashes()
      turns.push(turn)
    }
    try {
      await take(people, who)
      await take(networks, `${lane} ${networkOf(address)}`)
      await take(blocks, `${lane} ${blockOf(address)}`)
    } catch (error) {
      end()
      throw error
    }
    return { [Symbol.dispose]: end }
  }
}

function tooManyHashes(): AppError {
  const retryAfter = HASHING_RETRY_SECONDS
  return new AppError('OVERLOADED', `Too many passwords are being checked. Wait ${retryAfter} s.`, {
    extra: { retryAfter },
  })
}

/** The cost is counted by network, never by account. */
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

/** Reads only the first session cookie, like the library. Otherwise one session could reset the limits of another. */
export function sessionOf(request: Request, sessionCookie: string): string | null {
  const [token = ''] = cookiesOf(request).get(sessionCookie)?.split('.') ?? []
  return token === '' ? null : hash('sha256', token)
}
