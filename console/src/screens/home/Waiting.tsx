// What only this person can move on: databases that show nothing or do not answer, keys that end, refusals that repeat.
import { Link } from '@tanstack/react-router'
import { ChevronRight, Database, KeyRound, TriangleAlert, type LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'
import { useRead } from '../../api/queries.ts'
import type { ApiKey, Datasource, Team } from '../../api/types.ts'
import { hasRole, useTeam } from '../../frame/team.ts'
import { Icon } from '../../parts/Icon.tsx'
import { Load } from '../../parts/Load.tsx'
import { ago } from '../../parts/time.ts'

interface Task {
  readonly id: string
  readonly icon: LucideIcon
  readonly tone: 'none' | 'warn' | 'bad'
  readonly what: ReactNode
  readonly why: string
  readonly link: { readonly to: string; readonly params?: Readonly<Record<string, string>>; readonly search?: object }
}

export function Waiting() {
  const team = useTeam()
  const isAdmin = hasRole(team, 'ADMIN')
  const datasources = useRead('listDatasources', { params: { teamId: team.id } })
  const keys = useRead('listKeys', {})
  return (
    <section className="panel home-waiting" aria-label="Waiting for you">
      <header>
        <h2>Waiting for you</h2>
      </header>
      <Load of={datasources} what="tasks">
        {(data) => {
          const tasks = [...ofDatasources(team, data, isAdmin), ...ofKeys(keys.data ?? [])]
          return tasks.length === 0 ? <p className="home-nothing">Nothing waits for you.</p> : <Tasks tasks={tasks} />
        }}
      </Load>
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
        why: 'Programs and scripts ask with a key.',
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
            why: 'Rotate it, and give the new value to who uses it.',
            link: { to: '/settings/keys' },
          },
        ],
  )
}
