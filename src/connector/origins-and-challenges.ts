// Checks the headers Host and Origin, so that a web page cannot reach a Vitrine on the visitor's own machine (DNS
// rebinding). Also writes the header WWW-Authenticate, which tells clients how to sign in.
import type { AppError } from '../errors.ts'
import type { Scope } from '../auth/caller.ts'
import { isLoopbackName } from '../host-names.ts'

export interface Place {
  readonly loopback: boolean
  /** Without a trailing slash. Null if the operator set none. */
  readonly publicUrl: string | null
  readonly corsOrigins: ReadonlySet<string>
  readonly origin: () => string
}

/** Returns an error message if the Origin is unknown, or if the service listens on loopback and the Host is unknown. */
export function foreignPlace(
  { loopback, publicUrl, corsOrigins }: Place,
  headers: { readonly host?: string | undefined; readonly origin?: string | undefined },
): string | null {
  const own = publicUrl === null ? null : URL.parse(publicUrl)
  const isOurs = (hostname: string | undefined) =>
    hostname !== undefined && (hostname === own?.hostname || (loopback && isLoopbackName(hostname)))
  if (loopback && !isOurs(URL.parse(`http://${headers.host ?? ''}`)?.hostname)) {
    return 'The header Host names another host. Use the address of this service.'
  }
  // A request without Origin comes from a program, not from a web page.
  if (headers.origin === undefined || headers.origin === publicUrl || corsOrigins.has(headers.origin)) return null
  const origin = URL.parse(headers.origin)
  if (loopback && origin !== null && isLoopbackName(origin.hostname)) return null
  return 'Pages of other sites may not use this address.'
}

/** The scopes that a client should request first. */
const SCOPES: readonly Scope[] = ['profile', 'data:schema', 'data:read']

/** Has the address of the document that tells a client how to sign in. `isInvalid` is true for an invalid token. */
export function challenge(place: Place, isInvalid: boolean): string {
  const error = isInvalid ? 'error="invalid_token", ' : ''
  return `Bearer ${error}${resourceMetadata(place)}, scope="${SCOPES.join(' ')}"`
}

/** Lets the client request the missing scope. */
export function scopeChallenge(place: Place, { extra }: AppError): string {
  return `Bearer error="insufficient_scope", ${resourceMetadata(place)}, scope="${String(extra['requiredScope'])}"`
}

function resourceMetadata({ origin }: Place): string {
  return `resource_metadata="${origin()}/.well-known/oauth-protected-resource/mcp"`
}
