// The five operations that an API key may call: read the path, call one room, return.
import { account } from '../auth/accounts.ts'
import { describeDatasource } from '../datasources/describe.ts'
import { listDatasources } from '../datasources/datasources.ts'
import { runQuery } from '../query/run-query.ts'
import { listTeams } from '../teams/teams.ts'
import type { Handlers } from './handler.ts'

type Deps = Parameters<typeof account>[0] &
  Parameters<typeof listTeams>[0] &
  Parameters<typeof listDatasources>[0] &
  Parameters<typeof describeDatasource>[0] &
  Parameters<typeof runQuery>[0]

export function keyHandlers(
  deps: Deps,
): Pick<Handlers, 'getAccount' | 'listTeams' | 'listDatasources' | 'describeDatasource' | 'runQuery'> {
  return {
    getAccount: ({ call }) => account(deps, call),
    listTeams: ({ call }) => listTeams(deps, call),
    listDatasources: ({ call, membership }) => listDatasources(deps, call, membership),
    describeDatasource: ({ call, reached, query }) =>
      describeDatasource(deps, call, reached, { full: query.full === '1' }),
    runQuery: ({ call, params, body }) => runQuery(deps, call, params.teamId, params.id, body),
  }
}
