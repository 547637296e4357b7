// A page inside the frame: title, a line about the page, buttons, and the content.
import type { ReactNode } from 'react'
import { useRead } from '../api/queries.ts'
import type { Role, Team } from '../api/types.ts'
import { classes } from '../parts/class-names.ts'
import { Notice } from '../parts/Notice.tsx'
import { hasRole, ROLE_NAMES, useTeamOrNone } from './current-team.ts'
import { useTitle } from './page-title.ts'

interface PageProps {
  readonly title: string
  readonly lead?: ReactNode
  readonly crumbs?: ReactNode
  /** Buttons at the top right. At most one is primary. */
  readonly acts?: ReactNode
  /** `narrow`: forms. `full`: trees and grids. */
  readonly width?: 'narrow' | 'full'
  /** The lowest role that may use the page. A person with a lower role sees the names of people who may use it. */
  readonly needs?: Role
  readonly children?: ReactNode
}

export function Page({ title, lead, crumbs, acts, width, needs, children }: PageProps) {
  const team = useTeamOrNone()
  useTitle(title, team?.name ?? null)
  const allowed = needs === undefined || (team !== null && hasRole(team, needs))
  return (
    <div className={classes('page', width)}>
      <header className="page-head">
        <div className="page-title">
          {crumbs !== undefined && <div className="crumbs">{crumbs}</div>}
          <h1 tabIndex={-1}>{title}</h1>
          {lead !== undefined && allowed && <p>{lead}</p>}
        </div>
        {acts !== undefined && allowed && <div className="page-acts">{acts}</div>}
      </header>
      {allowed || team === null ? children : <Forbidden team={team} needs={needs} />}
    </div>
  )
}

function Forbidden({ team, needs }: { readonly team: Team; readonly needs: Role }) {
  const members = useRead('listMembers', { params: { teamId: team.id } })
  const names = (members.data ?? [])
    .filter((member) => member.status === 'ACTIVE' && hasRole(member, needs))
    .map((member) => member.name ?? member.email)
  return (
    <Notice role="note">
      <p>You need the role {ROLE_NAMES[needs].toLowerCase()} for this.</p>
      {names.length > 0 && (
        <p>
          Ask <bdi>{listed(names)}</bdi>.
        </p>
      )}
    </Notice>
  )
}

const SHOWN = 4

/** Joins names like `Ada, Bo or Cy`. */
function listed(names: readonly string[]): string {
  const shown = names.slice(0, SHOWN)
  const rest = names.length - shown.length
  if (rest > 0) return `${shown.join(', ')} or ${rest} more`
  return shown.length < 2 ? (shown[0] ?? '') : `${shown.slice(0, -1).join(', ')} or ${shown.at(-1) ?? ''}`
}
