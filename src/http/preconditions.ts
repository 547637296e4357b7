// What must hold before the query and the body of a request are read, beyond reach and role (session-interface.md §3): what
// else its path names is there, or 404; and the datasource is in a state for it, or 409. Routes whose refusals of that
// kind depend on their body are none of these, nor are those whose room reads the body itself.
import { requireOwnKey } from '../auth/api-keys.ts'
import { requireDocumented } from '../documentation/documentation.ts'
import { requireEnabled, requireIntrospected, requireUsable } from '../exposure/refusals.ts'
import { requireMember } from '../teams/memberships.ts'
import type { Preconditions } from './handler.ts'

type Deps = Parameters<typeof requireOwnKey>[0] &
  Parameters<typeof requireMember>[0] &
  Parameters<typeof requireDocumented>[0]

export function preconditionsOf(deps: Deps): Preconditions {
  return {
    rotateKey: (at) => requireOwnKey(deps, at.call, at.params.keyId),
    changeMember: (at) => requireMember(deps, at.membership, at.params.accountId),
    introspectDatasource: async (at) => requireEnabled(at.reached.row),
    putDocumentation: (at) => requireDocumented(deps, at.reached, at.params),
    generateDocumentation: async (at) => requireUsable(at.reached.row),
    profileDatasource: async (at) => requireUsable(at.reached.row),
    previewExposure: async (at) => requireIntrospected(at.reached.row),
  }
}
