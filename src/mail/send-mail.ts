// Sends mail. Letters wait in memory, in two queues, and are sent a few at a time to the server of SMTP_URL. The log of
// a failure contains no address, no text, and only the status of the server's reply.
import { isIP } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import type { Transporter } from 'nodemailer'
import { openFairLimit } from '../concurrency-limit.ts'
import type { Config, Smtp } from '../config.ts'
import { bareHost } from '../host-names.ts'
import { htmlOf, textOf, type Letter } from './mail-texts.ts'

export interface Mail extends AsyncDisposable {
  /** False without SMTP_URL. Then addresses cannot be verified by mail, and links are logged. */
  readonly isOn: boolean
  /**
   * Never throws and never waits. `source` is the account or network that caused the letter. Drops it if too many wait.
   */
  send(letter: Letter, source: string): void
}

interface Log {
  warn(detail: object, message: string): void
  error(detail: object, message: string): void
}

interface Deps {
  readonly config: Pick<Config, 'smtp' | 'publicUrl'>
  readonly log: Log
}

/**
 * Per queue: how many letters are sent at once, from one source and in total, and how many wait. Sources take turns.
 */
const TURNS = { each: 1, all: 2, waiting: 2_000 }
/**
 * Anybody can cause letters to an address without an account, by signing up or inviting. These letters have their own
 * queue, so that a flood of them neither delays nor drops a letter to an account.
 */
const TO_STRANGERS: ReadonlySet<Letter['kind']> = new Set(['verification', 'signed up again', 'invitation'])
/**
 * Letters that the server refused for the time being take other turns. So a flood of them delays no letter that was not
 * yet tried.
 */
const TURNS_AGAIN = TURNS
/** The pauses before the second and the third attempt. After the third failure, the letter is dropped. */
const PAUSES_MS = [1_000, 10_000]
const ENDING_MS = 3_000
const TIMEOUTS_MS = { dnsTimeout: 5_000, connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 20_000 }

export function openMail(deps: Deps): Mail {
  const { smtp, publicUrl } = deps.config
  return smtp === null ? noMail(deps.log) : inTwoQueues(smtp, senderOf(smtp, publicUrl), deps.log)
}

function inTwoQueues(smtp: Smtp, sender: string, log: Log): Mail {
  const accounts = new Queue({ smtp, sender, log })
  const strangers = new Queue({ smtp, sender, log })
  return {
    isOn: true,
    send: (letter, source) => (TO_STRANGERS.has(letter.kind) ? strangers : accounts).send(letter, source),
    async [Symbol.asyncDispose]() {
      await Promise.all([accounts, strangers].map((queue) => queue[Symbol.asyncDispose]()))
    },
  }
}

/** Logs the link, which the operator can pass on. Drops a letter without a link. */
function noMail(log: Log): Mail {
  return {
    isOn: false,
    send({ kind, to, link }) {
      if (link === undefined) return
      log.warn({ mail: kind, to, link }, 'SMTP_URL is not set: pass this link on yourself')
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

interface QueueOptions {
  readonly smtp: Smtp
  readonly sender: string
  readonly log: Log
}

class Queue implements AsyncDisposable {
  readonly #smtp: Smtp
  readonly #sender: string
  readonly #log: Log
  readonly #ending = new AbortController()
  readonly #turns = openFairLimit(TURNS)
  readonly #turnsAgain = openFairLimit(TURNS_AGAIN)
  readonly #queued = new Set<Promise<void>>()
  #lost = 0
  #transport: Promise<Transporter> | undefined

  constructor({ smtp, sender, log }: QueueOptions) {
    this.#smtp = smtp
    this.#sender = sender
    this.#log = log
  }

  send(letter: Letter, source: string): void {
    const task = this.#send(letter, source).finally(() => this.#queued.delete(task))
    this.#queued.add(task)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    const cancelTimer = new AbortController()
    const late = setTimeout(ENDING_MS, undefined, { signal: cancelTimer.signal }).catch(() => undefined)
    await Promise.race([Promise.all(this.#queued), late])
    cancelTimer.abort()
    const lost = this.#lost + this.#queued.size
    if (lost > 0) this.#log.error({ lost }, 'mail: the service stopped before these letters were sent')
  }

  async #send(letter: Letter, source: string): Promise<void> {
    try {
      for (let tries = 1; ; tries++) {
        const pause = await this.#try(letter, source, tries)
        if (pause === null) return
        // A pause takes no turn, so others are sent meanwhile. When the service stops, the pause ends.
        await setTimeout(pause, undefined, { signal: this.#ending.signal }).catch(() => undefined)
      }
    } catch {
      // The service stopped while the letter waited for its first attempt.
      this.#lost++
    }
  }

  /** Returns the pause before the next attempt, or null if there is none. */
  async #try(letter: Letter, source: string, tries: number): Promise<number | null> {
    using turn =
      tries === 1
        ? await this.#turns.take(source, { signal: this.#ending.signal })
        : await this.#turnsAgain.take(source, {})
    if (turn !== null) return await this.#deliver(letter, tries)
    this.#log.error({ mail: letter.kind }, 'mail: too many letters wait, dropped a letter')
    return null
  }

  async #deliver(letter: Letter, tries: number): Promise<number | null> {
    try {
      await this.#handOver(letter)
      return null
    } catch (err) {
      const pause = PAUSES_MS[tries - 1]
      if (pause !== undefined && !isFinal(err) && !this.#ending.signal.aborted) return pause
      this.#log.error({ err, mail: letter.kind, tries, ...stageOf(err) }, 'mail: sending failed')
      return null
    }
  }

  async #handOver(letter: Letter): Promise<void> {
    this.#transport ??= openTransport(this.#smtp)
    const transport = await this.#transport
    await transport.sendMail({
      from: { name: 'Vitrine', address: this.#sender },
      // An object, because nodemailer parses a string as a list of addresses.
      to: { name: '', address: letter.to },
      subject: letter.subject,
      text: textOf(letter),
      html: htmlOf(letter),
      headers: { 'Auto-Submitted': 'auto-generated' },
    })
  }
}

async function openTransport({ host, port, tls, login }: Smtp): Promise<Transporter> {
  const { createTransport } = await import('nodemailer')
  return createTransport({
    host,
    port,
    secure: tls === 'implicit',
    requireTLS: tls === 'required',
    ignoreTLS: tls === 'none',
    ...(tls === 'local' ? { opportunisticTLS: true, tls: { rejectUnauthorized: false } } : {}),
    ...(login === null ? {} : { auth: { user: login.user, pass: login.password } }),
    ...TIMEOUTS_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
}

/**
 * The sender is the `from` of SMTP_URL, or else the login if it is an address, or else vitrine@ and a host: that of
 * VITRINE_PUBLIC_URL, or else of SMTP_URL. localhost replaces an IP address.
 */
function senderOf({ from, login, host }: Smtp, publicUrl: string | null): string {
  if (from !== null) return from
  if (login?.user.includes('@') === true) return login.user
  const name = publicUrl === null ? host : new URL(publicUrl).hostname
  return `vitrine@${isIP(bareHost(name)) === 0 ? name : 'localhost'}`
}

/** `command` is the SMTP command that failed, such as CONN, AUTH or RCPT TO. */
function stageOf(error: unknown) {
  const command = error instanceof Error && 'command' in error ? error.command : undefined
  return { command: typeof command === 'string' ? command : undefined, smtpStatus: statusOf(error) }
}

function statusOf(error: unknown): number | undefined {
  return error instanceof Error && 'responseCode' in error && typeof error.responseCode === 'number'
    ? error.responseCode
    : undefined
}

/** True if the server rejected the letter or the login permanently. */
function isFinal(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return (statusOf(error) ?? 0) >= 500 || code === 'EAUTH'
}
