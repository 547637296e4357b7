/**
 * The HTTP layer sets this header to the client's network address. A header of this name from the caller is dropped.
 */
export const CLIENT_ADDRESS = 'x-vitrine-client'

const LENGTH_MAX = 200

/** Clients choose their User-Agent freely, so it is truncated and reduced to ASCII. */
export function clientOf(userAgent: string | null | undefined): string | undefined {
  return userAgent?.slice(0, LENGTH_MAX).replaceAll(/[^\x20-\x7e]/g, '?')
}

export function addressOf(request: Pick<Request, 'headers'>): string {
  return request.headers.get(CLIENT_ADDRESS) ?? ''
}

export function requestIdOf(request: Pick<Request, 'headers'>): string | undefined {
  const id = request.headers.get('x-request-id') ?? ''
  return /^[\w-]{1,64}$/.test(id) ? id : undefined
}
