// Parses an error response, which is not trusted. It may be BigQuery's error object in one of two forms, an error of
// the token endpoint, the HTML of a proxy, or empty.
import { z } from 'zod'

/** `googleText` is Google's own message. It must not be shown before it was checked. */
export class ErrorResponse extends Error {
  override readonly name = 'ErrorResponse'
  /** 200 if a job reported the error. */
  readonly status: number
  /** BigQuery's reason (invalidQuery, notFound …), the token endpoint's error (invalid_grant …), or ''. */
  readonly reason: string
  readonly googleText: string
  /** From the Retry-After header, at most a minute. Null if the header has no seconds. */
  readonly retryAfterMs: number | null

  constructor(status: number, reason: string, googleText: string, retryAfterMs: number | null = null) {
    super(`${status} ${reason}: ${googleText}`.slice(0, GOOGLE_TEXT_MAX))
    this.status = status
    this.reason = reason
    this.googleText = googleText
    this.retryAfterMs = retryAfterMs
  }
}

const GOOGLE_TEXT_MAX = 2_000

const Text = z.string().transform((text) => text.slice(0, GOOGLE_TEXT_MAX))
/** One of the `errors` of an error or a job, or the `errorResult` of a job. */
const Entry = z.object({ reason: Text.catch(''), message: Text.catch('') }).catch({ reason: '', message: '' })
const Entries = z.array(Entry).min(1)

const Carrier = z.object({
  error: z.object({
    message: Text.catch(''),
    status: Text.catch(''),
    errors: Entries.optional().catch(undefined),
    details: z
      .array(z.object({ reason: z.string().optional().catch(undefined) }).catch({ reason: undefined }))
      .optional()
      .catch(undefined),
  }),
})

const TokenError = z.object({ error: Text, error_description: Text.catch('') })

export function errorResponseOf(status: number, body: unknown, retryAfterMs: number | null): ErrorResponse {
  const token = TokenError.safeParse(body)
  if (token.success) return new ErrorResponse(status, token.data.error, token.data.error_description, retryAfterMs)
  const carrier = Carrier.safeParse(body)
  if (!carrier.success) return new ErrorResponse(status, '', '', retryAfterMs)
  const { error } = carrier.data
  const [first] = error.errors ?? []
  const detail = error.details?.find(({ reason }) => reason !== undefined)?.reason
  return new ErrorResponse(
    status,
    first?.reason || detail || error.status,
    error.message || first?.message || '',
    retryAfterMs,
  )
}

const Job = z.object({
  status: z
    .object({ errorResult: Entry.optional(), errors: Entries.optional().catch(undefined) })
    .optional()
    .catch(undefined),
  errors: Entries.optional().catch(undefined),
})

/**
 * Returns the error of a job in a response with a 2xx status, or null. The error is `status.errorResult`. If there is
 * no result (`hasAnswer` is false), it may also be the first of `errors` or `status.errors`. Beside a result, these are
 * only warnings.
 */
export function jobErrorOf(body: unknown, hasAnswer: boolean): ErrorResponse | null {
  const job = Job.safeParse(body)
  if (!job.success) return null
  const entry =
    job.data.status?.errorResult ?? (hasAnswer ? undefined : (job.data.errors?.[0] ?? job.data.status?.errors?.[0]))
  return entry === undefined ? null : new ErrorResponse(200, entry.reason, entry.message)
}
