import { acceptInvitation, addMember, removeInvitation, type InviteDeps } from '../teams/invitations.ts'
import { changeMember, leaveTeam, listMembers, openTeam, removeMember, requireMember } from '../teams/memberships.ts'
import type { Definitions } from './operation-types.ts'

type Names =
  | 'listMembers'
  | 'addMember'
  | 'changeMember'
  | 'removeMember'
  | 'removeInvitation'
  | 'acceptInvitation'
  | 'openTeam'
  | 'leaveTeam'

export function memberOperations(deps: InviteDeps): Pick<Definitions, Names> {
  return {
    listMembers: (at) => listMembers(deps, at.membership),
    addMember: (at) => addMember(deps, at.call, at.membership, at.body),
    changeMember: {
      require: (at) => requireMember(deps, at.membership, at.params.accountId),
      run: (at) => changeMember(deps, at.call, at.membership, at.params.accountId, at.body),
    },
    removeMember: (at) => removeMember(deps, at.call, at.membership, at.params.accountId),
    removeInvitation: (at) => removeInvitation(deps, at.call, at.membership, at.params.invitationId),
    acceptInvitation: (at) => acceptInvitation(deps, at.call, at.params.inviteToken),
    openTeam: (at) => openTeam(deps, at.call, at.membership),
    leaveTeam: (at) => leaveTeam(deps, at.call, at.membership),
  }
}
