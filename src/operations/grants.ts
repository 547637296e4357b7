import { endGrant, listGrants, narrowGrant, requireOwnGrant, type GrantDeps } from '../auth/grants.ts'
import { endTeamForGrant, listTeamGrants } from '../teams/team-grants.ts'
import type { Definitions } from './operation-types.ts'

type Names = 'listGrants' | 'narrowGrant' | 'endGrant' | 'listTeamGrants' | 'endTeamForGrant'

export function grantOperations(deps: GrantDeps): Pick<Definitions, Names> {
  return {
    listGrants: (at) => listGrants(deps, at.call),
    narrowGrant: {
      require: (at) => requireOwnGrant(deps, at.call, at.params.grantId),
      run: (at) => narrowGrant(deps, at.call, at.params.grantId, at.body),
    },
    endGrant: (at) => endGrant(deps, at.call, at.params.grantId),
    listTeamGrants: (at) => listTeamGrants(deps, at.membership, at.call.signal),
    endTeamForGrant: (at) => endTeamForGrant(deps, at.call, at.membership, at.params.grantId),
  }
}
