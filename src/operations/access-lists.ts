import { getAccess, putAccess, type AccessDeps } from '../datasources/access-list.ts'
import type { Definitions } from './operation-types.ts'

export function accessOperations(deps: AccessDeps): Pick<Definitions, 'getAccess' | 'putAccess'> {
  return {
    getAccess: (at) => getAccess(deps, at.reached.id),
    putAccess: (at) => putAccess(deps, at.call, at.reached, at.body),
  }
}
