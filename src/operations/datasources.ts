import { lastTest, testDatasource, tryConnection } from '../datasources/test-datasource.ts'
import {
  changeDatasource,
  createDatasource,
  deleteDatasource,
  disableDatasource,
  enableDatasource,
  getDatasource,
  listDatasources,
} from '../datasources/datasources.ts'
import { introspectDatasource } from '../introspection/introspect-job.ts'
import { requireEnabled, requireIntrospected } from '../exposure/require-usable.ts'
import { describeDatasource } from '../descriptions/describe-datasource.ts'
import { viewAsAgent } from '../descriptions/agent-view.ts'
import { getCatalog } from '../descriptions/full-catalog.ts'
import type { Definitions } from './operation-types.ts'

type Names =
  | 'describeDatasource'
  | 'viewAsAgent'
  | 'getCatalog'
  | 'listDatasources'
  | 'createDatasource'
  | 'getDatasource'
  | 'changeDatasource'
  | 'deleteDatasource'
  | 'tryConnection'
  | 'getTest'
  | 'testDatasource'
  | 'introspectDatasource'
  | 'disableDatasource'
  | 'enableDatasource'

type Deps = Parameters<typeof testDatasource>[0] &
  Parameters<typeof describeDatasource>[0] &
  Parameters<typeof viewAsAgent>[0] &
  Parameters<typeof getCatalog>[0] &
  Parameters<typeof introspectDatasource>[0] &
  Parameters<typeof listDatasources>[0]

export function datasourceOperations(deps: Deps): Pick<Definitions, Names> {
  return {
    listDatasources: (at) => listDatasources(deps, at.call, at.membership),
    describeDatasource: (at) => describeDatasource(deps, at.call, at.reached, { full: at.query.full === '1' }),
    viewAsAgent: (at) => viewAsAgent(deps, at.call, at.reached, at.query),
    getCatalog: {
      require: async (at) => requireIntrospected(at.reached.row),
      run: (at) => getCatalog(deps, at.call, at.reached),
    },
    createDatasource: (at) => createDatasource(deps, at.call, at.membership, at.body),
    getDatasource: (at) => getDatasource(deps, at.reached),
    changeDatasource: (at) => changeDatasource(deps, at.call, at.reached, at.body),
    deleteDatasource: (at) => deleteDatasource(deps, at.call, at.reached),
    tryConnection: (at) => tryConnection(deps, at.call, at.membership, at.body),
    getTest: (at) => lastTest(deps, at.reached),
    testDatasource: (at) => testDatasource(deps, at.call, at.reached),
    introspectDatasource: {
      require: async (at) => requireEnabled(at.reached.row),
      run: (at) => introspectDatasource(deps, at.call, at.reached),
    },
    disableDatasource: (at) => disableDatasource(deps, at.call, at.reached),
    enableDatasource: (at) => enableDatasource(deps, at.call, at.reached),
  }
}
