// Who is on a datasource's access list: read the request, call one room, return.
import { getAccess, putAccess, type AccessDeps } from '../../datasources/access-list.ts'
import type { Handlers } from '../handler.ts'

export function accessHandlers(deps: AccessDeps): Pick<Handlers, 'getAccess' | 'putAccess'> {
  return {
    getAccess: (at) => getAccess(deps, at.reached.id),
    putAccess: (at) => putAccess(deps, at.call, at.reached, at.body),
  }
}
