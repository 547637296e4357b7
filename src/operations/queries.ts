// The fields of a query's body depend on the type of the datasource, so its driver reads the body.
import { checkQuery, type CheckDeps } from '../query/check-query.ts'
import { runQuery, type QueryDeps } from '../query/run-query.ts'
import type { Definitions } from './operation-types.ts'

export function queryOperations(deps: QueryDeps & CheckDeps): Pick<Definitions, 'runQuery' | 'checkQuery'> {
  return {
    runQuery: (at) => runQuery(deps, at.call, at.reached, at.body),
    checkQuery: (at) => checkQuery(deps, at.call, at.reached, at.body),
  }
}
