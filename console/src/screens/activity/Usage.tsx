// The number of queries per day, as bars and as a table, and the remaining budget. Managers also see the numbers per
// key or agent and per datasource.
import { useRead } from '../../api/queries.ts'
import type { Usage as UsageAnswer } from '../../api/types.ts'
import { useDatasourceNames } from '../../frame/names-by-id.ts'
import { useTeam } from '../../frame/current-team.ts'
import { NamedNumbers } from '../../parts/NamedNumbers.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { Select } from '../../parts/Select.tsx'
import { Table } from '../../parts/Table.tsx'
import { counted, day as dayWords, number } from '../../parts/format.ts'
import { Name } from '../../parts/UntrustedText.tsx'
import { USAGE_TIMES, useFilters } from './filters.ts'

type Day = UsageAnswer['days'][number]

export function Usage({ isManager }: { readonly isManager: boolean }) {
  const team = useTeam()
  const { filters, set } = useFilters()
  const days = filters.from === '30' || filters.from === 'all' ? '30' : '7'
  const usage = useRead('getUsage', { params: { teamId: team.id }, query: { days } })
  return (
    <div className="stack">
      <div className="filters">
        <Select bare label="Time" value={days} options={USAGE_TIMES} onChange={(value) => set('from', value)} />
      </div>
      <LoadState of={usage} what="usage" lines={8}>
        {(data) => (
          <div className="stack">
            <Summary usage={data} />
            <Bars days={data.days} />
            <Table
              label="Queries per day"
              rows={data.days.toReversed()}
              keyOf={({ date }) => date}
              columns={[
                { head: 'Day', kind: 'main', cell: ({ date }) => dayWords(date) },
                { head: 'Queries', kind: 'number', cell: ({ queries }) => number(queries) },
                { head: 'Refused', kind: 'number', cell: ({ denied }) => number(denied) },
                { head: 'Failed', kind: 'number', cell: ({ failed }) => number(failed) },
                { head: 'Rows', kind: 'number', cell: ({ rows }) => number(rows) },
              ]}
            />
            {isManager && <ByKey usage={data} />}
          </div>
        )}
      </LoadState>
    </div>
  )
}

function Summary({ usage: { budget, days } }: { readonly usage: UsageAnswer }) {
  const sum = (of: (day: Day) => number) => days.reduce((all, day) => all + of(day), 0)
  const facts = [
    ['Queries', number(sum(({ queries }) => queries))],
    ['Refused', number(sum(({ denied }) => denied))],
    ['Failed', number(sum(({ failed }) => failed))],
    ['Budget left', `${number(budget.remaining)} of ${number(budget.limit)}`],
  ] as const
  return <NamedNumbers of={facts} />
}

/** Shows the bars as an image with a label, because the table below contains the same numbers. */
function Bars({ days }: { readonly days: readonly Day[] }) {
  const most = Math.max(1, ...days.map(({ queries }) => queries))
  const [first] = days
  if (first === undefined) return null
  const busiest = days.reduce((a, b) => (b.queries > a.queries ? b : a), first)
  const total = days.reduce((all, { queries }) => all + queries, 0)
  const name = `Queries per day: ${counted(total, 'query', 'queries')} in ${days.length} days, at most ${number(busiest.queries)} on ${dayWords(busiest.date)}`
  const share = (value: number) => `${(value / most) * 100}%`
  return (
    <figure className="bars-place">
      <div className="bars" role="img" aria-label={name}>
        {days.map(({ date, queries, denied, failed }) => (
          <div key={date} className="bar" title={`${dayWords(date)}: ${queries}, ${denied} refused`}>
            <span className="answered" style={{ height: share(queries - denied - failed) }} />
            <span className="failed" style={{ height: share(failed) }} />
            <span className="denied" style={{ height: share(denied) }} />
          </div>
        ))}
      </div>
      <div className="row apart tiny number" aria-hidden>
        <span>{dayWords(first.date)}</span>
        <span>{dayWords(days.at(-1)?.date ?? busiest.date)}</span>
      </div>
      <figcaption className="legend tiny">
        <span className="answered" />
        Answered
        <span className="failed" />
        Failed
        <span className="denied" />
        Refused
      </figcaption>
    </figure>
  )
}

function ByKey({ usage }: { readonly usage: UsageAnswer }) {
  const team = useTeam()
  const params = { teamId: team.id }
  const names = new Map([
    ...(useRead('listTeamKeys', { params }).data ?? []).map(({ id, name }) => [id, name] as const),
    ...(useRead('listTeamGrants', { params }).data ?? []).map(({ id, clientName }) => [id, clientName] as const),
  ])
  const people = new Map(
    (useRead('listMembers', { params }).data ?? []).map(({ accountId, name, email }) => [accountId, name ?? email]),
  )
  const datasources = useDatasourceNames()
  if (usage.keys.length === 0) return null
  return (
    <div className="columns-2">
      <Table
        label="By key or agent"
        rows={usage.keys}
        keyOf={({ accountId, keyId }) => `${accountId} ${keyId ?? ''}`}
        columns={[
          {
            head: 'Key or agent',
            kind: 'main',
            cell: ({ accountId, keyId }) => (
              <Name>
                {keyId === null
                  ? `${people.get(accountId) ?? 'Somebody'}, signed in`
                  : (names.get(keyId) ?? 'an ended key or agent')}
              </Name>
            ),
          },
          { head: 'Queries', kind: 'number', cell: ({ queries }) => number(queries) },
          { head: 'Refused', kind: 'number', cell: ({ denied }) => number(denied) },
        ]}
      />
      <Table
        label="By datasource"
        rows={usage.datasources}
        keyOf={({ datasourceId }) => datasourceId}
        columns={[
          {
            head: 'Datasource',
            kind: 'main',
            cell: ({ datasourceId }) => <Name>{datasources.get(datasourceId) ?? 'deleted'}</Name>,
          },
          { head: 'Queries', kind: 'number', cell: ({ queries }) => number(queries) },
          { head: 'Rows', kind: 'number', cell: ({ rows }) => number(rows) },
        ]}
      />
    </div>
  )
}
