import { z } from 'zod'
import { Unreadable } from '../session/http-exchange.ts'
import type { Rest } from '../session/rest.ts'

const PAGES_MAX = 1_000

const Page = z.looseObject({ nextPageToken: z.string().min(1).max(16_384).optional().catch(undefined) })

export interface List {
  readonly path: readonly string[]
  /** The field of the response with the list. BigQuery omits an empty list. */
  readonly key: string
  readonly pageMax: number
}

/**
 * The items are not validated. Throws Unreadable for an invalid list or too many pages. Throws the errors of
 * Rest.json().
 */
export async function* readPages(
  rest: Rest,
  { path, key, pageMax }: List,
  signal: AbortSignal,
): AsyncGenerator<unknown> {
  let token: string | undefined
  for (let pages = 0; ; pages++) {
    if (pages >= PAGES_MAX) throw new Unreadable('a list with too many pages')
    const query = { maxResults: String(pageMax), ...(token === undefined ? {} : { pageToken: token }) }
    const page = Page.safeParse(await rest.json({ method: 'GET', path, query }, signal))
    if (!page.success) throw new Unreadable('an invalid list')
    const items = page.data[key] ?? []
    if (!Array.isArray(items)) throw new Unreadable('an invalid list')
    yield* items
    token = page.data.nextPageToken
    if (token === undefined) return
  }
}
