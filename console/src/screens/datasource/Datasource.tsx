// The pages of one datasource: a header with tabs that are links, and the page of the selected tab below.
import { Link, Outlet, useLocation, useParams } from '@tanstack/react-router'
import { createContext, useContext } from 'react'
import { useRead } from '../../api/queries.ts'
import type { Datasource as DatasourceItem } from '../../api/types.ts'
import { Page } from '../../frame/Page.tsx'
import { useTeam } from '../../frame/current-team.ts'
import { LoadState } from '../../parts/LoadState.tsx'
import { LinkTabs } from '../../parts/Tabs.tsx'

const Context = createContext<DatasourceItem | null>(null)

/** Returns the datasource of the page. Only the pages of its tabs may call this hook. */
export function useDatasource(): DatasourceItem {
  const datasource = useContext(Context)
  if (datasource === null) throw new Error('this screen has no datasource')
  return datasource
}

const TABS = [
  { value: 'exposure', label: 'Exposure', to: '/t/$team/datasources/$id/exposure' },
  { value: 'documentation', label: 'Documentation', to: '/t/$team/datasources/$id/documentation' },
  { value: 'access', label: 'Access', to: '/t/$team/datasources/$id/access' },
  { value: 'health', label: 'Health', to: '/t/$team/datasources/$id/health' },
  { value: 'settings', label: 'Settings', to: '/t/$team/datasources/$id/settings' },
] as const

export function Datasource() {
  const team = useTeam()
  const { id = '' } = useParams({ strict: false })
  const { pathname } = useLocation()
  const tab = TABS.find(({ value }) => pathname.endsWith(`/${value}`)) ?? TABS[0]
  const datasource = useRead('getDatasource', { params: { teamId: team.id, id } })
  const params = { team: team.slug, id }
  return (
    <Page
      title={tab.label}
      width="full"
      needs="ADMIN"
      crumbs={
        <>
          <Link to="/t/$team/datasources" params={{ team: team.slug }}>
            Datasources
          </Link>
          <span aria-hidden>/</span>
          <bdi>{datasource.data?.name ?? ''}</bdi>
        </>
      }
    >
      <LinkTabs
        label="Datasource"
        value={tab.value}
        tabs={TABS.map(({ value, label, to }) => ({ value, label, link: { to, params } }))}
      >
        <LoadState of={datasource} what="datasource">
          {(data) => (
            <Context value={data}>
              <Outlet />
            </Context>
          )}
        </LoadState>
      </LinkTabs>
    </Page>
  )
}
