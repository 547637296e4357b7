// Finds an OAuth client in the store, or by the metadata document at the URL that is its id.
import type { Client } from './client.ts'
import { z } from 'zod'
import type { Store } from '../store/open.ts'
import type { ClientDocuments } from './client-documents.ts'

export interface Clients {
  /**
   * Returns null if there is no such client, or if its document cannot be read or is not valid. `from` is the network
   * of the caller, which limits concurrent reads of documents. Omit it if the client has a code or a token: then reads
   * are limited per host of the document.
   */
  find(id: string, from?: string): Promise<Client | null>
}

const ID_MAX = 2_000
const Uris = z.array(z.string())

/** The URL must be normalized, with https, the default port and a path. */
export function isDocumentId(id: string): boolean {
  const url = id.length <= ID_MAX && id.startsWith('https://') ? URL.parse(id) : null
  if (url === null || url.href !== id || url.pathname === '/') return false
  // A document at another port of the host may belong to anybody.
  return url.port === '' && url.username === '' && url.password === '' && !id.includes('#')
}

export function openClients(deps: { readonly store: Pick<Store, 'db'>; readonly documents: ClientDocuments }): Clients {
  return {
    async find(id, from) {
      if (isDocumentId(id)) return await deps.documents.read(id, from ?? new URL(id).host)
      // PostgreSQL refuses a text with a null byte.
      if (id.length > ID_MAX || id.includes('\0')) return null
      const row = await deps.store.db
        .selectFrom('oauth_clients')
        .select(['clientId', 'name', 'redirectUris'])
        .where('clientId', '=', id)
        .executeTakeFirst()
      if (row === undefined) return null
      return { id: row.clientId, name: row.name, host: null, redirectUris: Uris.parse(JSON.parse(row.redirectUris)) }
    },
  }
}
