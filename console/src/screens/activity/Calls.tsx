// The calls, newest first, with filters. The selected call is shown above the list.
import { useSearch } from '@tanstack/react-router'
import { Activity as ActivityIcon, Bot, ChevronDown, KeyRound, UserRound } from 'lucide-react'
import { useEffect, useState } from 'react'
import { useRead } from '../../api/queries.ts'
import type { AuditItem } from '../../api/types.ts'
import { useDatasourceNames } from '../../frame/names-by-id.ts'
import { useTeam } from '../../frame/current-team.ts'
import { Button } from '../../parts/Button.tsx'
import { Empty } from '../../parts/Empty.tsx'
import { Switch } from '../../parts/Field.tsx'
import { Icon } from '../../parts/Icon.tsx'
import { Loading, LoadFailed } from '../../parts/LoadState.tsx'
import { Select } from '../../parts/Select.tsx'
import { Table } from '../../parts/Table.tsx'
import { State } from '../../parts/Tag.tsx'
import { Time } from '../../parts/Time.tsx'
import { Name } from '../../parts/UntrustedText.tsx'
import { CallDetails } from './CallDetails.tsx'
import { blockedWords, callerWords, subjectWords, VIA_WORDS } from './call-words.ts'
import { ANY, KINDS, TIMES, timeWords, useAuditQuery, useFilters, type Chosen } from './filters.ts'
import { useCalls } from './useCalls.ts'

/** The icons of callers. They distinguish a key from a person with the same name. */
const CALLERS = { API_KEY: KeyRound, SESSION: UserRound, CONNECTOR: Bot } as const

export function Calls({ own }: { readonly own: boolean }) {
  const team = useTeam()
  const chosen = useFilters()
  const [live, setLive] = useState(false)
  const { pages, items } = useCalls(team.id, useAuditQuery(chosen.filters), own, live)
  const { id } = useSearch({ strict: false })
  const shown = useShown(id, items, own)
  const names = useDatasourceNames()
  return (
    <div className="stack">
      <Filters chosen={chosen} own={own} live={live} onLive={setLive} />
      {shown !== null && <CallDetails item={shown} own={own} names={names} onClose={() => chosen.set('id', '')} />}
      {pages.isPending && <Loading what="calls" lines={8} />}
      {pages.error !== null && items.length === 0 && (
        <LoadFailed what="calls" error={pages.error} busy={pages.isFetching} onRetry={() => void pages.refetch()} />
      )}
      {pages.data !== undefined && items.length === 0 && <NoCalls chosen={chosen} />}
      {items.length > 0 && (
        <Table
          label="Calls"
          rows={items}
          keyOf={(item) => item.id}
          isCurrent={(item) => item.id === shown?.id}
          columns={[
            { head: 'When', kind: 'quiet', cell: ({ at }) => <Time at={at} /> },
            { head: 'Outcome', cell: ({ outcome }) => <State of={outcome} /> },
            {
              head: 'Who',
              cell: (item) => (
                <span className="caller">
                  <Icon of={CALLERS[item.via]} />
                  <span className="hidden-words">{VIA_WORDS[item.via]} </span>
                  <Name>{callerWords(item)}</Name>
                </span>
              ),
            },
            {
              head: 'Datasource',
              kind: 'quiet',
              cell: ({ datasourceId }) => <Name>{names.get(datasourceId ?? '') ?? ''}</Name>,
            },
            { head: 'Blocked', cell: (item) => <Name>{item.outcome === 'ANSWERED' ? '' : blockedWords(item)}</Name> },
            {
              head: 'Asked',
              cell: (item) => (
                <span className="asked cut mono">
                  <Name>{subjectWords(item)}</Name>
                </span>
              ),
            },
            {
              head: '',
              kind: 'acts',
              cell: (item) => (
                <Button small look="quiet" onClick={() => chosen.set('id', item.id)}>
                  Show call
                </Button>
              ),
            },
          ]}
        />
      )}
      {pages.hasNextPage && (
        <div>
          <Button icon={ChevronDown} busy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
            Show older calls
          </Button>
        </div>
      )}
    </div>
  )
}

/** Returns the call whose id is in the address. If the list lacks the call, requests it, unless `own` is set. */
function useShown(id: string | undefined, items: readonly AuditItem[], own: boolean): AuditItem | null {
  const team = useTeam()
  const listed = items.find((item) => item.id === id)
  const read = useRead(
    'getAuditItem',
    { params: { teamId: team.id, auditId: id ?? '' } },
    { enabled: id !== undefined && listed === undefined && !own },
  )
  if (id === undefined) return null
  return listed ?? read.data ?? null
}

const OUTCOMES = [
  { value: ANY, label: 'Any outcome' },
  { value: 'ANSWERED', label: 'Answered' },
  { value: 'DENIED', label: 'Refused' },
  { value: 'FAILED', label: 'Failed' },
]

interface FiltersProps {
  readonly chosen: Chosen
  readonly own: boolean
  readonly live: boolean
  readonly onLive: (live: boolean) => void
}

function Filters({ chosen: { filters, set }, own, live, onLive }: FiltersProps) {
  const team = useTeam()
  const params = { teamId: team.id }
  const datasources = useRead('listDatasources', { params }).data ?? []
  const keys = useRead('listTeamKeys', { params }, { enabled: !own }).data ?? []
  const members = useRead('listMembers', { params }, { enabled: !own }).data ?? []
  return (
    <div className="filters">
      <SearchField value={filters.q} onSearch={(q) => set('q', q)} />
      <Select bare label="Kind" value={filters.kind} options={KINDS} onChange={(value) => set('kind', value)} />
      <Select
        bare
        label="Outcome"
        value={filters.outcome}
        options={OUTCOMES}
        onChange={(value) => set('outcome', value)}
      />
      <Select
        bare
        label="Datasource"
        value={filters.datasource}
        options={[
          { value: ANY, label: 'Any datasource' },
          ...datasources.map(({ id, name }) => ({ value: id, label: name })),
        ]}
        onChange={(value) => set('datasource', value)}
      />
      {!own && (
        <>
          <Select
            bare
            label="Key"
            value={filters.key}
            options={[
              { value: ANY, label: 'Any key' },
              ...keys.map(({ id, name, hint }) => ({ value: id, label: name, note: `…${hint}` })),
            ]}
            onChange={(value) => set('key', value)}
          />
          <Select
            bare
            label="Person"
            value={filters.person}
            options={[
              { value: ANY, label: 'Anyone' },
              ...members.flatMap(({ accountId, name, email }) =>
                accountId === null ? [] : [{ value: accountId, label: name ?? email }],
              ),
            ]}
            onChange={(value) => set('person', value)}
          />
        </>
      )}
      <Select bare label="Time" value={filters.from} options={TIMES} onChange={(value) => set('from', value)} />
      {!own && (
        <span className="filters-end">
          <Switch label="Live" checked={live} onChange={(event) => onLive(event.target.checked)} />
        </span>
      )}
    </div>
  )
}

const PAUSE_MS = 400

function SearchField({ value, onSearch }: { readonly value: string; readonly onSearch: (text: string) => void }) {
  const [text, setText] = useState(value)
  useEffect(() => {
    if (text === value) return undefined
    const timer = setTimeout(() => onSearch(text), PAUSE_MS)
    return () => clearTimeout(timer)
  })
  return (
    <input
      type="search"
      className="input filters-text"
      aria-label="Filter"
      placeholder="Search in queries and names"
      maxLength={100}
      data-filter
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  )
}

function NoCalls({ chosen: { filters, isFiltered, set } }: { readonly chosen: Chosen }) {
  const title = isFiltered ? 'No call matches the filters' : `Nothing was asked ${timeWords(filters.from)}`
  return (
    <Empty
      icon={ActivityIcon}
      title={title}
      acts={filters.from !== '30' && <Button onClick={() => set('from', '30')}>Show 30 days</Button>}
    >
      Each query, refusal and change appears here a moment after it happened.
    </Empty>
  )
}
