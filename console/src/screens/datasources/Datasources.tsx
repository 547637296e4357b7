// The databases of a team: status, login, what agents see, and the time of the last introspection.
import { Link } from '@tanstack/react-router'
import { AlertTriangle, Check, Database, Pause, Play, Plus, Trash2, X } from 'lucide-react'
import { useState } from 'react'
import { useCall, useRead } from '../../api/queries.ts'
import type { Datasource } from '../../api/types.ts'
import { Page } from '../../frame/Page.tsx'
import { hasRole, useTeam } from '../../frame/current-team.ts'
import { LinkButton } from '../../parts/Button.tsx'
import { Empty } from '../../parts/Empty.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { MenuItem, MenuLine, RowMenu } from '../../parts/Menu.tsx'
import { Failure } from '../../parts/Notice.tsx'
import { say } from '../../parts/StatusMessages.tsx'
import { Table, type Column } from '../../parts/Table.tsx'
import { State, Tag } from '../../parts/Tag.tsx'
import { number } from '../../parts/format.ts'
import { Time } from '../../parts/Time.tsx'
import { DeleteDatasource } from './DeleteDatasource.tsx'
import { KIND_NAMES, TABLE_WORDS } from './kind-names.ts'

export function Datasources() {
  const team = useTeam()
  const manages = hasRole(team, 'ADMIN')
  const datasources = useRead('listDatasources', { params: { teamId: team.id } })
  const connect = (
    <LinkButton to="/t/$team/datasources/new" params={{ team: team.slug }} look="primary" icon={Plus}>
      Connect a datasource
    </LinkButton>
  )
  const isEmpty = datasources.data?.length === 0
  return (
    <Page
      title="Datasources"
      lead="Databases that this team queries through Vitrine. Agents see only the exposed tables and columns."
      acts={manages && !isEmpty ? connect : undefined}
    >
      <LoadState of={datasources} what="list">
        {(rows) =>
          rows.length === 0 ? (
            <Empty icon={Database} title="No datasource yet" acts={manages ? connect : undefined}>
              {manages
                ? 'Connect a database. Nothing is shown to anyone until you choose tables.'
                : 'There is no datasource that you may use. An admin of this team can connect one.'}
            </Empty>
          ) : (
            <List rows={rows} manages={manages} slug={team.slug} />
          )
        }
      </LoadState>
    </Page>
  )
}

interface ListProps {
  readonly rows: readonly Datasource[]
  readonly manages: boolean
  readonly slug: string
}

function List({ rows, manages, slug }: ListProps) {
  const [deleting, setDeleting] = useState<Datasource | null>(null)
  const disable = useCall('disableDatasource')
  const enable = useCall('enableDatasource')
  const turn = async (row: Datasource, to: typeof disable, said: string) => {
    await to.mutateAsync({ params: { teamId: row.teamId, id: row.id } }).then(
      () => say(`${row.name} is ${said}`),
      () => undefined,
    )
  }
  const acts: Column<Datasource> = {
    head: '',
    kind: 'acts',
    cell: (row) => (
      <RowMenu label={`Actions for ${row.name}`}>
        {row.status === 'DISABLED' ? (
          <MenuItem icon={Play} onSelect={() => void turn(row, enable, 'enabled')}>
            Enable
          </MenuItem>
        ) : (
          <MenuItem icon={Pause} onSelect={() => void turn(row, disable, 'disabled')}>
            Disable
          </MenuItem>
        )}
        <MenuLine />
        <MenuItem icon={Trash2} danger onSelect={() => setDeleting(row)}>
          Delete
        </MenuItem>
      </RowMenu>
    ),
  }
  return (
    <>
      <Failure of={disable.error ?? enable.error} />
      <Table
        label="Datasources"
        rows={rows}
        keyOf={({ id }) => id}
        columns={[named(slug, manages), ...STATE, ...(manages ? [...MANAGED, acts] : [])]}
      />
      <DeleteDatasource datasource={deleting} onClose={() => setDeleting(null)} onDeleted={() => undefined} />
    </>
  )
}

/** The name opens the exposure for managers, and the playground for members. */
const named = (slug: string, manages: boolean): Column<Datasource> => ({
  head: 'Name',
  kind: 'main',
  cell: (row) => (
    <span className="two-lines">
      {manages ? (
        <Link to="/t/$team/datasources/$id/exposure" params={{ team: slug, id: row.id }}>
          <bdi>{row.name}</bdi>
        </Link>
      ) : (
        <Link to="/t/$team/playground" params={{ team: slug }} search={{ ds: row.id }}>
          <bdi>{row.name}</bdi>
        </Link>
      )}
      <span className="tiny">
        {KIND_NAMES[row.type]} · <bdi>{placeOf(row)}</bdi>
      </span>
    </span>
  ),
})

const placeOf = ({ host, port, database }: Datasource) =>
  host === null ? database : `${host}${port === null ? '' : `:${port}`}/${database}`

const STATE: readonly Column<Datasource>[] = [
  {
    head: 'Status',
    cell: (row) => (
      <span className="two-lines">
        <State of={row.status} />
        {row.lastError !== null && row.status === 'ERROR' && (
          <span className="tiny cut" title={row.lastError}>
            <bdi>{row.lastError}</bdi>
          </span>
        )}
      </span>
    ),
  },
  {
    head: 'Shown to agents',
    cell: (row) => {
      const [one, many] = TABLE_WORDS[row.type]
      const total = row.tableCount
      if (total === undefined || total === null) return counted(row.exposedTableCount, one, many)
      return (
        <span className={row.exposedTableCount === 0 ? 'soft number' : 'number'}>
          {number(row.exposedTableCount)} of {counted(total, one, many)}
        </span>
      )
    },
  },
]

const counted = (n: number, one: string, many: string) => `${number(n)} ${n === 1 ? one : many}`

const GRADES = {
  PASS: ['ok', Check, 'Good'],
  WARN: ['warn', AlertTriangle, 'Has warnings'],
  FAIL: ['bad', X, 'Failed'],
} as const

const MANAGED: readonly Column<Datasource>[] = [
  {
    head: 'Login',
    cell: ({ lastGrade }) => {
      if (lastGrade === undefined || lastGrade === null) return <span className="soft">Not checked</span>
      const [tone, icon, word] = GRADES[lastGrade]
      return (
        <Tag tone={tone} icon={icon} bare>
          {word}
        </Tag>
      )
    },
  },
  {
    head: 'Last look',
    kind: 'quiet',
    cell: ({ schemaCapturedAt, driftCount }) => (
      <>
        {schemaCapturedAt === undefined || schemaCapturedAt === null ? 'Never' : <Time at={schemaCapturedAt} />}
        {(driftCount ?? 0) > 0 && <> · {number(driftCount ?? 0)} changed</>}
      </>
    ),
  },
]
