// The errors of the API. A retired code stays in the table as a comment, so that nobody gives it another meaning.

/** docs/errors.md explains the codes. */
export const STATUS = {
  INVALID_REQUEST: 400,
  INVALID_QUERY: 400,
  UNAUTHENTICATED: 401,
  SCOPE_REQUIRED: 403,
  QUERY_DENIED: 403,
  ROLE_REQUIRED: 403,
  REAUTHENTICATION_REQUIRED: 403,
  TEAM_FORBIDDEN: 403,
  TEAM_NOT_OPENED: 403,
  SECOND_FACTOR_REQUIRED: 403,
  SIGN_IN_REFUSED: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  NOT_CONNECTED: 409,
  DATASOURCE_DISABLED: 409,
  SCHEMA_STALE: 409,
  CONFLICT: 409,
  BODY_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  QUERY_FAILED: 422,
  RATE_LIMITED: 429,
  INTERNAL: 500,
  DATASOURCE_UNAVAILABLE: 502,
  OVERLOADED: 503,
  STORE_UNAVAILABLE: 503,
  QUERY_TIMEOUT: 504,
} as const satisfies Record<string, number>

export type Code = keyof typeof STATUS

/**
 * The header with the URL at which a manager can expose the refused table or column. It is not in the body, because the
 * body must be the same for hidden and missing names.
 */
export const EXPOSE_URL = 'vitrine-expose-url'

export type ErrorExtra = Readonly<Record<string, unknown>>

/**
 * `message` is sent unchanged, so it must not contain secrets, hidden names or error texts of a database. `cause` is
 * only for the log.
 */
export class AppError extends Error {
  override readonly name = 'AppError'
  readonly code: Code
  readonly extra: ErrorExtra
  /** Headers of the answer, such as RateLimit-*. The HTTP layer adds the headers that follow from the code. */
  readonly headers: Readonly<Record<string, string>>

  constructor(code: Code, message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.extra = options.extra ?? {}
    this.headers = options.headers ?? {}
  }

  withHeaders(headers: Readonly<Record<string, string>>): AppError {
    return new AppError(this.code, this.message, {
      extra: this.extra,
      headers: { ...this.headers, ...headers },
      cause: this.cause,
    })
  }
}

interface AppErrorOptions {
  readonly extra?: ErrorExtra
  readonly headers?: Readonly<Record<string, string>>
  readonly cause?: unknown
}

/** The same answer for an object that is hidden from the caller and for one that does not exist. */
export function notFound(): AppError {
  return new AppError('NOT_FOUND', 'Not found, or you have no access.')
}

/** A body of a megabyte can have a hundred thousand problems. */
const DETAILS_MAX = 101

export interface Issue {
  /** Names of fields, and positions in lists. Empty if the problem is about the whole request. */
  readonly path: readonly (string | number)[]
  readonly message: string
}

/**
 * `details` has a line for each problem, such as `tables[0].columns: must be …`. `issues` has the same problems for
 * programs.
 */
export function invalidRequest(all: readonly string[], message?: string, issues?: readonly Issue[]): AppError {
  const details = all.slice(0, DETAILS_MAX)
  return new AppError('INVALID_REQUEST', message ?? `The request is not valid: ${details.join('; ')}`, {
    extra: { details, issues: issues?.slice(0, DETAILS_MAX) ?? details.map(issueOf) },
  })
}

/** A line without a path is about the whole request. */
function issueOf(line: string): Issue {
  const [, path = '', message] = /^([A-Za-z_]\w*(?:\[\d+\]|\.[\w-]+)*)(?:: |(?<=\]) )(.*)$/s.exec(line) ?? []
  if (message === undefined || path === 'body') return { path: [], message: message ?? line }
  const parts = path.match(/[^.[\]]+/g) ?? []
  return { path: parts.map((part) => (/^\d+$/.test(part) ? Number(part) : part)), message }
}
