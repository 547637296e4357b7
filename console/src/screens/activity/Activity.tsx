// Queries, refusals and changes: single calls, refusals grouped by cause, usage by day.
import { useSearch } from '@tanstack/react-router'
import { Page } from '../../frame/Page.tsx'
import { hasRole, useTeam } from '../../frame/current-team.ts'
import { Notice } from '../../parts/Notice.tsx'
import { Tabs } from '../../parts/Tabs.tsx'
import { Calls } from './Calls.tsx'
import { Export } from './Export.tsx'
import { useFilters } from './filters.ts'
import { Refusals } from './Refusals.tsx'
import { Usage } from './Usage.tsx'
import './activity.css'

type Tab = 'calls' | 'refusals' | 'usage'
const TABS = [
  { value: 'calls', label: 'Calls' },
  { value: 'refusals', label: 'Refusals' },
  { value: 'usage', label: 'Usage' },
] as const

const tabOf = (text: string | undefined): Tab => TABS.find(({ value }) => value === text)?.value ?? 'calls'

export function Activity() {
  const team = useTeam()
  const isManager = hasRole(team, 'ADMIN')
  const tab = tabOf(useSearch({ strict: false }).tab)
  const { set } = useFilters()
  return (
    <Page
      title="Activity"
      width="full"
      lead={isManager ? 'Calls in this team, including refused calls.' : undefined}
      acts={isManager && <Export />}
    >
      {!isManager && <Notice role="note">Only admins see the calls of others. These are your own calls.</Notice>}
      <Tabs label="Activity" tabs={TABS} value={tab} onChange={(next) => set('tab', next === 'calls' ? '' : next)}>
        {tab === 'calls' && <Calls own={!isManager} />}
        {tab === 'refusals' && <Refusals isManager={isManager} />}
        {tab === 'usage' && <Usage isManager={isManager} />}
      </Tabs>
    </Page>
  )
}
