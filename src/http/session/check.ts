// Would this query run? The body goes to the room as it came: which fields it may hold depends on the datasource.
import { checkQuery, type CheckDeps } from '../../query/check.ts'
import type { Handlers } from '../handler.ts'

export function checkHandlers(deps: CheckDeps): Pick<Handlers, 'checkQuery'> {
  return {
    checkQuery: (at) => checkQuery(deps, at.call, at.params.teamId, at.params.id, at.body),
  }
}
