// Teams: read the request, call one room, return.
import { changeTeam, createTeam, deleteTeam, describeTeam, type TeamDeps } from '../../teams/teams.ts'
import type { Handlers } from '../handler.ts'

export function teamHandlers(deps: TeamDeps): Pick<Handlers, 'createTeam' | 'getTeam' | 'changeTeam' | 'deleteTeam'> {
  return {
    createTeam: (at) => createTeam(deps, at.call, at.body),
    getTeam: (at) => describeTeam(deps, at.call, at.membership),
    changeTeam: (at) => changeTeam(deps, at.call, at.membership, at.body),
    deleteTeam: (at) => deleteTeam(deps, at.call, at.membership, at.body),
  }
}
