import { requireUsable } from '../exposure/require-usable.ts'
import { profileDatasource, type ProfileDeps } from '../introspection/profile-job.ts'
import type { Definitions } from './operation-types.ts'

export function profileOperations(deps: ProfileDeps): Pick<Definitions, 'profileDatasource'> {
  return {
    profileDatasource: {
      require: async (at) => requireUsable(at.reached.row),
      run: (at) => profileDatasource(deps, at.call, at.reached, at.body ?? {}),
    },
  }
}
