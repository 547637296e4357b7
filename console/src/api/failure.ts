// The errors of a call, and the texts that explain them to the person.

/** The service answered with an error. `message` is the service's error text if there is one. */
export class Refused extends Error {
  override readonly name = 'Refused'
  readonly status: number
  readonly code: string
  /** All fields of the error body. */
  readonly body: Readonly<Record<string, unknown>>

  constructor(status: number, body: Readonly<Record<string, unknown>>) {
    super(typeof body['error'] === 'string' ? body['error'] : `The service answered with status ${status}.`)
    this.status = status
    this.code = typeof body['code'] === 'string' ? body['code'] : ''
    this.body = body
  }

  get requestId(): string | null {
    return typeof this.body['requestId'] === 'string' ? this.body['requestId'] : null
  }

  /** One sentence for each invalid field of a request. */
  get details(): readonly string[] {
    const { details } = this.body
    return Array.isArray(details) ? details.filter((each): each is string => typeof each === 'string') : []
  }
}

/** There was no answer: the service or the network is down. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable'
  constructor() {
    super('The service does not answer.')
  }
}

/** Nobody is signed in, or the person cancelled signing in again. */
export class SignedOut extends Error {
  override readonly name = 'SignedOut'
  constructor() {
    super('You are signed out.')
  }
}

/** Something failed in the browser. The message explains the failure to the person. */
export class Told extends Error {
  override readonly name = 'Told'
}

/** Returns the text to show for a failed call. */
export function sentenceOf(error: unknown): string {
  if (error instanceof Refused) return error.details.length > 0 ? error.details.join(' ') : error.message
  if (error instanceof Unreachable) return 'The service does not answer. Your input is kept. Try again.'
  if (error instanceof SignedOut || error instanceof Told) return error.message
  return 'This page failed. Reload it.'
}

export const isCode = (error: unknown, ...codes: readonly string[]) =>
  error instanceof Refused && codes.includes(error.code)
export const isStatus = (error: unknown, status: number) => error instanceof Refused && error.status === status
