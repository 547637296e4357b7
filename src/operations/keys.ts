import {
  changeKey,
  createKey,
  listKeys,
  requireListedKey,
  requireOwnKey,
  revokeKey,
  rotateKey,
  type KeyDeps,
} from '../auth/api-keys.ts'
import { endTeamForKey, listTeamKeys } from '../teams/team-keys.ts'
import type { Definitions } from './operation-types.ts'

type Names = 'listKeys' | 'createKey' | 'changeKey' | 'rotateKey' | 'revokeKey' | 'listTeamKeys' | 'endTeamForKey'

export function keyOperations(deps: KeyDeps): Pick<Definitions, Names> {
  return {
    listKeys: (at) => listKeys(deps, at.call),
    createKey: (at) => createKey(deps, at.call, at.body),
    changeKey: {
      require: (at) => requireListedKey(deps, at.call, at.params.keyId),
      run: (at) => changeKey(deps, at.call, at.params.keyId, at.body),
    },
    rotateKey: {
      require: (at) => requireOwnKey(deps, at.call, at.params.keyId),
      run: (at) => rotateKey(deps, at.call, at.params.keyId, at.body),
    },
    revokeKey: (at) => revokeKey(deps, at.call, at.params.keyId),
    listTeamKeys: (at) => listTeamKeys(deps, at.membership, at.call.signal),
    endTeamForKey: (at) => endTeamForKey(deps, at.call, at.membership, at.params.keyId),
  }
}
