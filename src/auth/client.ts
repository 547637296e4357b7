// The calling program as the audit shows it. Callers choose this text freely, so it is short and plain ASCII.

const LENGTH_MAX = 200

/** From a User-Agent header. Undefined where there is none. */
export function clientOf(userAgent: string | null | undefined): string | undefined {
  return userAgent?.slice(0, LENGTH_MAX).replaceAll(/[^\x20-\x7e]/g, '?')
}
