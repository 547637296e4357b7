// Lists tasks for this person: a first datasource or key, databases that show nothing or cannot be reached, keys that
// expire, requests of colleagues, and frequent refusals.
import { Link } from '@tanstack/react-router'
import { ChevronRight, Database, Hand, KeyRound, ShieldX, TriangleAlert, type LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'
import { useRead } from '../../api/queries.ts'
import type { Answer, ApiKey, Datasource, Team } from '../../api/types.ts'
import { hasRole, useTeam } from '../../frame/current-team.ts'
import { Icon } from '../../parts/Icon.tsx'
import { LoadState } from '../../parts/LoadState.tsx'
import { ago, counted } from '../../parts/format.ts'

interface Task {
  readonly id: string
  readonly icon: LucideIcon
  readonly tone: 'none' | 'warn' | 'bad'
  readonly what: ReactNode
  readonly why: string
  readonly link: { readonly to: string; readonly params?: Readonly<Record<string, string>>; readonly search?: object }
}

export function WaitingForYou() {
  const team = useTeam()
  const isAdmin = hasRole(team, 'ADMIN')
  const datasources = useRead('listDatasources', { params: { teamId: team.id } })
  const keys = useRead('listKeys', {})
  const at = { params: { teamId: team.id } }
  const refusals = useRead('listRefusals', { ...at, query: { days: 7 } }, { enabled: isAdmin })
  const requests = useRead('listRequests', { ...at, query: { state: 'OPEN' } }, { enabled: isAdmin })
  return (
    <section className="panel home-waiting" aria-label="Waiting for you">
      <header>
        <h2>Waiting for you</h2>
      </header>
      <LoadState of={datasources} what="tasks">
        {(data) => {
          const tasks = [
            ...ofRequests(team, requests.data ?? []),
            ...ofDatasources(team, data, isAdmin),
            ...ofKeys(keys.data ?? []),
            ...ofRefusals(team, refusals.data ?? []),
          ]
          return tasks.length === 0 ? <p className="home-nothing">Nothing waits for you.</p> : <Tasks tasks={tasks} />
        }}
      </LoadState>
    </section>
  )
}

function Tasks({ tasks }: { readonly tasks: readonly Task[] }) {
  return (
    <ul className="tasks">
      {tasks.map(({ id, icon, tone, what, why, link }) => (
        <li key={id}>
          <Link {...link} className="task">
            <span className={`task-icon ${tone}`}>
              <Icon of={icon} />
            </span>
            <span className="person-words">
              <span>{what}</span>
              <span className="tiny">{why}</span>
            </span>
            <Icon of={ChevronRight} />
          </Link>
        </li>
      ))}
    </ul>
  )
}

function ofDatasources(team: Team, datasources: readonly Datasource[], isAdmin: boolean): readonly Task[] {
  const params = { team: team.slug }
  if (!isAdmin) return []
  if (datasources.length === 0)
    return [
      {
        id: 'connect',
        icon: Database,
        tone: 'none',
        what: 'Connect a datasource',
        why: 'Nothing is shown to anyone until you choose tables.',
        link: { to: '/t/$team/datasources/new', params },
      },
    ]
  return datasources.flatMap(({ id, name, status, exposedTableCount, lastError }): readonly Task[] => {
    const inside = { team: team.slug, id }
    if (status === 'ERROR')
      return [
        {
          id,
          icon: TriangleAlert,
          tone: 'bad',
          what: (
            <>
              <bdi>{name}</bdi> cannot be reached
            </>
          ),
          why: lastError ?? 'Check the connection.',
          link: { to: '/t/$team/datasources/$id/health', params: inside },
        },
      ]
    if (exposedTableCount > 0) return []
    return [
      {
        id,
        icon: Database,
        tone: 'none',
        what: (
          <>
            <bdi>{name}</bdi> shows nothing yet
          </>
        ),
        why: 'Choose the tables and columns that may be read.',
        link: { to: '/t/$team/datasources/$id/exposure', params: inside },
      },
    ]
  })
}

function ofKeys(keys: readonly ApiKey[]): readonly Task[] {
  if (keys.length === 0)
    return [
      {
        id: 'key',
        icon: KeyRound,
        tone: 'none',
        what: 'Create an API key',
        why: 'Programs and scripts send queries with a key.',
        link: { to: '/settings/keys', search: { create: '1' } },
      },
    ]
  return keys.flatMap(({ id, name, expiring, expiresAt }): readonly Task[] =>
    !expiring || expiresAt === null
      ? []
      : [
          {
            id,
            icon: KeyRound,
            tone: 'warn',
            what: (
              <>
                The key <bdi>{name}</bdi> ends {ago(expiresAt)}
              </>
            ),
            why: 'Rotate it, and give the new value to the people who use it.',
            link: { to: '/settings/keys' },
          },
        ],
  )
}

/** Returns a task for each request of a colleague to expose a refused object. */
function ofRequests(team: Team, requests: Answer<'listRequests'>): readonly Task[] {
  return requests.map(({ id, name, blocked, why }) => ({
    id,
    icon: Hand,
    tone: 'none',
    what: (
      <>
        <bdi>{name}</bdi> asks for the {blocked.kind} <bdi>{blocked.name}</bdi>
      </>
    ),
    why,
    link: { to: '/t/$team/activity', params: { team: team.slug }, search: { tab: 'refusals' } },
  }))
}

const SHOWN = 3

/** Returns a task for each of the most frequent refusals of this week that a change of the exposure may avoid. */
function ofRefusals(team: Team, groups: Answer<'listRefusals'>): readonly Task[] {
  return groups
    .filter(({ fixable }) => fixable)
    .slice(0, SHOWN)
    .map(({ blocked, table, count, exampleAuditId }) => ({
      id: exampleAuditId,
      icon: ShieldX,
      tone: 'warn',
      what: (
        <>
          {blocked.kind === 'table' ? 'Table' : 'Column'} <bdi>{blocked.name}</bdi>
          {blocked.kind === 'column' && table !== undefined && (
            <>
              {' '}
              of <bdi>{table}</bdi>
            </>
          )}{' '}
          was refused {counted(count, 'time')} this week
        </>
      ),
      why: 'Show it, or leave it hidden.',
      link: { to: '/t/$team/activity', params: { team: team.slug }, search: { tab: 'refusals' } },
    }))
}
