// Describes an OAuth client, which is registered or has a metadata document.

export interface Client {
  readonly id: string
  /** The name that the client gives itself. */
  readonly name: string
  /** The host of the client's document. Null for a registered client, which only its redirect URI identifies. */
  readonly host: string | null
  readonly redirectUris: readonly string[]
}

/**
 * Returns the host that is responsible for a client: the host of its document, or otherwise the host of its redirect
 * URI.
 */
export function hostOf(client: Client, redirectUri: string): string {
  return client.host ?? (URL.parse(redirectUri)?.hostname || 'unknown')
}
