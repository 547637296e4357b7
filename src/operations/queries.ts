// Operations that run or check a query. The driver reads the body, because its fields depend on the datasource type.
import { checkQuery, type CheckDeps } from '../query/check-query.ts'
import { runQuery, type QueryDeps } from '../query/run-query.ts'
import type { Definitions } from './operation-types.ts'

export function queryOperations(deps: QueryDeps & CheckDeps): Pick<Definitions, 'runQuery' | 'checkQuery'> {
  return {
    runQuery: (at) => runQuery(deps, at.call, at.reached, at.body),
    checkQuery: (at) => checkQuery(deps, at.call, at.reached, at.body),
  }
}
