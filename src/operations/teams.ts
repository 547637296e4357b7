// Operations on teams.
import { changeTeam, createTeam, deleteTeam, describeTeam, listTeams, type TeamDeps } from '../teams/teams.ts'
import type { Definitions } from './operation-types.ts'

export function teamOperations(
  deps: TeamDeps,
): Pick<Definitions, 'listTeams' | 'createTeam' | 'getTeam' | 'changeTeam' | 'deleteTeam'> {
  return {
    listTeams: (at) => listTeams(deps, at.call),
    createTeam: (at) => createTeam(deps, at.call, at.body),
    getTeam: (at) => describeTeam(deps, at.call, at.membership),
    changeTeam: (at) => changeTeam(deps, at.call, at.membership, at.body),
    deleteTeam: (at) => deleteTeam(deps, at.call, at.membership, at.body),
  }
}
