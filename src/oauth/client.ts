// An OAuth client is registered, or has a metadata document at the URL that is its id.

export interface Client {
  readonly id: string
  readonly name: string
  /** Null for a registered client. */
  readonly host: string | null
  readonly redirectUris: readonly string[]
}

/** Returns the host on the consent page, which the grant stores. */
export function hostOf(client: Client, redirectUri: string): string {
  return client.host ?? (URL.parse(redirectUri)?.hostname || 'unknown')
}
