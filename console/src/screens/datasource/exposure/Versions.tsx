// The history of an exposure. Restoring a version only changes the ticks. The person then reviews and saves the change.
import { useInfiniteQuery } from '@tanstack/react-query'
import { call } from '../../../api/client.ts'
import { isStatus } from '../../../api/failure.ts'
import type { Datasource } from '../../../api/types.ts'
import { Button } from '../../../parts/Button.tsx'
import { Dialog } from '../../../parts/Dialog.tsx'
import { LoadFailed, Loading } from '../../../parts/LoadState.tsx'
import { Failure } from '../../../parts/Notice.tsx'
import { Tag } from '../../../parts/Tag.tsx'
import { counted, number } from '../../../parts/format.ts'
import { Time } from '../../../parts/Time.tsx'
import { useAction } from '../../../parts/useAction.ts'
import type { TableNames } from './choice.ts'

interface VersionsProps {
  readonly open: boolean
  readonly onClose: () => void
  readonly datasource: Datasource
  readonly current: number
  readonly onRestore: (version: number, tables: readonly TableNames[]) => void
}

export function Versions({ open, onClose, current, ...rest }: VersionsProps) {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      wide
      title="Versions"
      description="Each save creates a version. Restoring a version ticks exactly its columns. You review the change before you save it."
      foot={<Button onClick={onClose}>Close</Button>}
    >
      {current === 0 ? <p className="soft">Nothing was saved yet.</p> : <List {...rest} current={current} />}
    </Dialog>
  )
}

const PAGE = 30

function List({ datasource: { teamId, id }, current, onRestore }: Omit<VersionsProps, 'open' | 'onClose'>) {
  const pages = useInfiniteQuery({
    queryKey: ['listExposureVersions', teamId, id],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) => {
      const query = { brief: '1', limit: PAGE, cursor: pageParam === '' ? undefined : pageParam }
      return call('listExposureVersions', { params: { teamId, id }, query }, signal)
    },
    getNextPageParam: ({ nextCursor }) => nextCursor,
  })
  if (pages.error !== null)
    return <LoadFailed what="versions" error={pages.error} onRetry={() => void pages.refetch()} />
  if (pages.data === undefined) return <Loading what="versions" />
  const items = pages.data.pages.flatMap((page) => [...page.items])
  return (
    <>
      <ol className="versions">
        {items.map((item) => (
          <li key={item.version}>
            <div className="version-words">
              <span className="row">
                <strong>Version {item.version}</strong>
                {item.version === current && <Tag tone="accent">shown now</Tag>}
                {'removed' in item && <Counts of={item} />}
              </span>
              {item.note !== null && <bdi className="version-note">{item.note}</bdi>}
              <span className="tiny">
                <bdi>{item.author.name ?? 'Somebody who left'}</bdi> · <Time at={item.savedAt} />
              </span>
            </div>
            {item.version !== current && <Restore {...{ teamId, id, onRestore }} version={item.version} />}
          </li>
        ))}
      </ol>
      {pages.hasNextPage && (
        <Button busy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          Show older
        </Button>
      )}
    </>
  )
}

interface CountsOf {
  readonly tables: number | null
  readonly columns: number | null
  readonly added: number | null
  readonly removed: number | null
}

function Counts({ of: { tables, columns, added, removed } }: { readonly of: CountsOf }) {
  if (tables === null || columns === null) return null
  return (
    <span className="tiny number">
      {counted(tables, 'table')}, {counted(columns, 'column')}
      {(added ?? 0) > 0 && ` · ${number(added ?? 0)} added`}
      {(removed ?? 0) > 0 && ` · ${number(removed ?? 0)} removed`}
    </span>
  )
}

interface RestoreProps extends Pick<VersionsProps, 'onRestore'> {
  readonly teamId: string
  readonly id: string
  readonly version: number
}

function Restore({ teamId, id, version, onRestore }: RestoreProps) {
  const restore = useAction(async () => {
    const { tables } = await call('getExposureVersion', { params: { teamId, id, version: String(version) } })
    onRestore(version, tables)
  })
  return (
    <div className="version-acts">
      <Button small busy={restore.busy} onClick={restore.run}>
        Restore version {version}
      </Button>
      {isStatus(restore.error, 404) ? <span className="tiny">No longer stored.</span> : <Failure of={restore.error} />}
    </div>
  )
}
