// Refused queries grouped by the blocked object, largest group first.
import { ShieldCheck } from 'lucide-react'
import { useRead } from '../../api/queries.ts'
import { useDatasourceNames } from '../../frame/names-by-id.ts'
import { useTeam } from '../../frame/current-team.ts'
import { LinkButton } from '../../parts/Button.tsx'
import { Empty } from '../../parts/Empty.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { Notice } from '../../parts/Notice.tsx'
import { Select } from '../../parts/Select.tsx'
import { Table } from '../../parts/Table.tsx'
import { Time } from '../../parts/Time.tsx'
import { counted, number } from '../../parts/format.ts'
import { Name } from '../../parts/UntrustedText.tsx'
import { Requests } from '../requests/Requests.tsx'
import { REFUSAL_TIMES, timeWords, useFilters } from './filters.ts'

export function Refusals({ isManager }: { readonly isManager: boolean }) {
  if (!isManager)
    return (
      <Notice role="note">
        Only admins see the refusals of a team. Your own are under Calls, with the outcome Refused.
      </Notice>
    )
  return <Groups />
}

function Groups() {
  const team = useTeam()
  const { filters, set } = useFilters()
  const days = REFUSAL_TIMES.some(({ value }) => value === filters.from) ? filters.from : '30'
  const params = { teamId: team.id }
  const refusals = useRead('listRefusals', { params, query: { days } })
  const names = useDatasourceNames()
  return (
    <div className="stack">
      <Requests />
      <div className="filters">
        <Select bare label="Time" value={days} options={REFUSAL_TIMES} onChange={(value) => set('from', value)} />
      </div>
      <LoadState of={refusals} what="refusals">
        {(groups) =>
          groups.length === 0 ? (
            <Empty icon={ShieldCheck} title={`Nothing was refused ${timeWords(days)}`}>
              Refused queries appear here, grouped by what was blocked.
            </Empty>
          ) : (
            <Table
              label="Refusals"
              rows={groups}
              keyOf={({ exampleAuditId }) => exampleAuditId}
              columns={[
                {
                  head: 'Blocked',
                  kind: 'main',
                  cell: ({ blocked, table }) => (
                    <Name>
                      {`${blocked.kind} ${blocked.name}${table === undefined || blocked.kind === 'table' ? '' : ` of ${table}`}`}
                    </Name>
                  ),
                },
                {
                  head: 'Datasource',
                  kind: 'quiet',
                  cell: ({ datasourceId }) => <Name>{names.get(datasourceId) ?? 'deleted'}</Name>,
                },
                { head: 'Times', kind: 'number', cell: ({ count }) => number(count) },
                {
                  head: 'By',
                  kind: 'quiet',
                  cell: ({ keys, accounts }) => `${counted(keys, 'key')}, ${counted(accounts, 'person', 'people')}`,
                },
                { head: 'Last', kind: 'quiet', cell: ({ lastAt }) => <Time at={lastAt} /> },
                {
                  head: '',
                  kind: 'acts',
                  cell: ({ datasourceId, exampleAuditId, fixable }) => (
                    <span className="row">
                      <LinkButton
                        small
                        look="quiet"
                        to="/t/$team/activity"
                        params={{ team: team.slug }}
                        search={{ id: exampleAuditId }}
                      >
                        Show call
                      </LinkButton>
                      {fixable && names.has(datasourceId) && (
                        <LinkButton
                          small
                          to="/t/$team/datasources/$id/exposure"
                          params={{ team: team.slug, id: datasourceId }}
                          search={{ from: exampleAuditId }}
                        >
                          Expose from this
                        </LinkButton>
                      )}
                    </span>
                  ),
                },
              ]}
            />
          )
        }
      </LoadState>
    </div>
  )
}
