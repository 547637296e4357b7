// API keys, one's own and a team's: read the request, call one room, return.
import { createKey, listKeys, revokeKey, rotateKey, type KeyDeps } from '../../auth/api-keys.ts'
import { reachedBy } from '../../teams/counts.ts'
import { endTeamForKey, listTeamKeys } from '../../teams/team-keys.ts'
import type { Handlers } from '../handler.ts'

type Names = 'listKeys' | 'createKey' | 'rotateKey' | 'revokeKey' | 'listTeamKeys' | 'endTeamForKey'

export function apiKeyHandlers(given: Omit<KeyDeps, 'reached'>): Pick<Handlers, Names> {
  const deps = { ...given, reached: reachedBy }
  return {
    listKeys: (at) => listKeys(deps, at.call),
    createKey: (at) => createKey(deps, at.call, at.body),
    rotateKey: (at) => rotateKey(deps, at.call, at.params.keyId, at.body),
    revokeKey: (at) => revokeKey(deps, at.call, at.params.keyId),
    listTeamKeys: (at) => listTeamKeys(deps, at.membership),
    endTeamForKey: (at) => endTeamForKey(deps, at.call, at.membership, at.params.keyId),
  }
}
