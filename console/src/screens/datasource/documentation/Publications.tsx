// The publications: time, author, and what changed since the previous publication.
import { useInfiniteQuery } from '@tanstack/react-query'
import { call } from '../../../api/client.ts'
import { Button } from '../../../parts/Button.tsx'
import { Dialog } from '../../../parts/Dialog.tsx'
import { Loading, LoadFailed } from '../../../parts/LoadState.tsx'
import { Table } from '../../../parts/Table.tsx'
import { number } from '../../../parts/format.ts'
import { Time } from '../../../parts/Time.tsx'
import { Name } from '../../../parts/UntrustedText.tsx'
import { useDatasource } from '../Datasource.tsx'

export function Publications({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }) {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      wide
      title="Publications"
      description="Agents read the newest publication."
      foot={<Button onClick={onClose}>Close</Button>}
    >
      {open && <List />}
    </Dialog>
  )
}

function List() {
  const { teamId, id } = useDatasource()
  const pages = useInfiniteQuery({
    queryKey: ['listPublications', teamId, id],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      call(
        'listPublications',
        { params: { teamId, id }, query: { limit: 50, ...(pageParam === '' ? {} : { cursor: pageParam }) } },
        signal,
      ),
    getNextPageParam: ({ nextCursor }) => nextCursor,
  })
  if (pages.data === undefined)
    return pages.error === null ? (
      <Loading what="publications" />
    ) : (
      <LoadFailed what="publications" error={pages.error} onRetry={() => void pages.refetch()} />
    )
  const items = pages.data.pages.flatMap((page) => page.items)
  if (items.length === 0) return <p className="soft">Nothing was published yet.</p>
  return (
    <>
      <Table
        label="Publications"
        rows={items}
        keyOf={({ version }) => version}
        columns={[
          { head: 'Published', kind: 'main', cell: ({ publishedAt }) => <Time at={publishedAt} /> },
          { head: 'By', cell: ({ author }) => <Name>{author.name ?? 'Somebody who left'}</Name> },
          { head: 'Tables', kind: 'number', cell: ({ tables }) => number(tables) },
          { head: 'Texts', kind: 'number', cell: ({ texts }) => number(texts) },
          { head: 'Added', kind: 'number', cell: ({ added }) => number(added) },
          { head: 'Changed', kind: 'number', cell: ({ changed }) => number(changed) },
          { head: 'Removed', kind: 'number', cell: ({ removed }) => number(removed) },
        ]}
      />
      {pages.hasNextPage && (
        <div>
          <Button small busy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
            Show older publications
          </Button>
        </div>
      )}
    </>
  )
}
