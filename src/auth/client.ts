// What a request tells about where it comes from: the calling program and its network address.

const LENGTH_MAX = 200

/** The calling program, from a User-Agent header. The caller chooses this text freely, so it is cut and made plain ASCII. */
export function clientOf(userAgent: string | null | undefined): string | undefined {
  return userAgent?.slice(0, LENGTH_MAX).replaceAll(/[^\x20-\x7e]/g, '?')
}

/** The caller's network address, as the door tells it in a header of its own. */
export function addressOf(request: Pick<Request, 'headers'>): string {
  return request.headers.get('x-vitrine-client') ?? ''
}
