// Profiles: read the request, call one room, return.
import { profileDatasource, type ProfileDeps } from '../../datasources/profile.ts'
import type { Handlers } from '../handler.ts'

export function profileHandlers(deps: ProfileDeps): Pick<Handlers, 'profileDatasource'> {
  return {
    profileDatasource: (at) => profileDatasource(deps, at.call, at.reached, at.body ?? {}),
  }
}
