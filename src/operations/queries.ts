// The datasource's driver reads the body of a query, whose fields depend on the kind of database.
import { checkQuery, type CheckDeps } from '../query/check-query.ts'
import { runQuery, type QueryDeps } from '../query/run-query.ts'
import type { Definitions } from './operation-types.ts'

export function queryOperations(deps: QueryDeps & CheckDeps): Pick<Definitions, 'runQuery' | 'checkQuery'> {
  return {
    runQuery: (at) => runQuery(deps, at.call, at.reached, at.body),
    checkQuery: (at) => checkQuery(deps, at.call, at.reached, at.body),
  }
}
