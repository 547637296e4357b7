// The team that the frame shows, and the person's role in it.
import { createContext, useContext } from 'react'
import type { Role, Team } from '../api/types.ts'

export const TeamContext = createContext<Team | null>(null)

/** Returns the team of the page. Only screens under /t/$team may call this hook. */
export function useTeam(): Team {
  const team = useContext(TeamContext)
  if (team === null) throw new Error('this screen has no team')
  return team
}

export const useTeamOrNone = () => useContext(TeamContext)

const RANK: Readonly<Record<Role, number>> = { MEMBER: 0, ADMIN: 1, OWNER: 2 }

export const hasRole = (team: Pick<Team, 'role'>, role: Role) => RANK[team.role] >= RANK[role]

export const ROLE_NAMES: Readonly<Record<Role, string>> = { OWNER: 'Owner', ADMIN: 'Admin', MEMBER: 'Member' }
