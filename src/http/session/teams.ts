// Teams: read the request, call one room, return. What a deleted team had open is ended.
import type { Leases } from '../../datasources/leases.ts'
import { changeTeam, createTeam, deleteTeam, describeTeam, type TeamDeps } from '../../teams/teams.ts'
import type { Handlers } from '../handler.ts'

type Deps = TeamDeps & { readonly leases: Pick<Leases, 'endTeam'> }

export function teamHandlers(deps: Deps): Pick<Handlers, 'createTeam' | 'getTeam' | 'changeTeam' | 'deleteTeam'> {
  return {
    createTeam: (at) => createTeam(deps, at.call, at.body),
    getTeam: (at) => describeTeam(deps, at.call, at.membership),
    changeTeam: (at) => changeTeam(deps, at.call, at.membership, at.body),
    async deleteTeam(at) {
      await deleteTeam(deps, at.call, at.membership, at.body)
      await deps.leases.endTeam(at.params.teamId)
    },
  }
}
