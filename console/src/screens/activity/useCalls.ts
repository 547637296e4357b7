// The calls of a team, or the person's own calls in all teams, newest first, page by page. In live mode, new calls are
// added every few seconds.
import { useInfiniteQuery, type InfiniteData } from '@tanstack/react-query'
import { useEffect } from 'react'
import { call } from '../../api/client.ts'
import { queryClient } from '../../api/queries.ts'
import type { Answer } from '../../api/types.ts'

type Page = Answer<'listAudit'>
type Query = Readonly<Record<string, string>>

const PAGE = 50
const LIVE_MS = 3_000

/** With `own`, returns the person's own calls, which every role may read, without live mode. */
export function useCalls(teamId: string, query: Query, own: boolean, live: boolean) {
  const key = [own ? 'listActivity' : 'listAudit', teamId, query]
  const pages = useInfiniteQuery({
    queryKey: key,
    initialPageParam: '',
    queryFn: ({ pageParam, signal }): Promise<Page> => {
      const page = { ...query, limit: PAGE, ...(pageParam === '' ? {} : { cursor: pageParam }) }
      return own
        ? call('listActivity', { query: page }, signal)
        : call('listAudit', { params: { teamId }, query: page }, signal)
    },
    getNextPageParam: ({ nextCursor }) => nextCursor,
    // Returning to this screen or to the browser's tab must not fetch every page again.
    staleTime: Number.POSITIVE_INFINITY,
  })
  const items = pages.data?.pages.flatMap((page) => page.items) ?? []
  const newest = items[0]?.id
  const keyText = JSON.stringify(key)
  useEffect(() => {
    if (!live || own) return undefined
    const hangUp = new AbortController()
    const look = async () => {
      const after = newest === undefined ? {} : { after: newest }
      const fresh = await call(
        'listAudit',
        { params: { teamId }, query: { ...query, ...after, limit: PAGE } },
        hangUp.signal,
      )
      if (fresh.items.length > 0) prepend(JSON.parse(keyText), fresh.items)
    }
    // The timer repeats a failed request.
    const timer = setInterval(() => void look().catch(() => undefined), LIVE_MS)
    return () => {
      clearInterval(timer)
      hangUp.abort()
    }
  }, [live, own, newest, keyText, teamId, query])
  return { pages, items }
}

function prepend(key: readonly unknown[], items: Page['items']): void {
  queryClient.setQueryData<InfiniteData<Page>>(key, (old) => {
    const [first, ...rest] = old?.pages ?? []
    if (old === undefined || first === undefined) return old
    const known = new Set(first.items.map(({ id }) => id))
    const fresh = items.filter(({ id }) => !known.has(id))
    return { ...old, pages: [{ ...first, items: [...fresh, ...first.items] }, ...rest] }
  })
}
