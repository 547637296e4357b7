// Managing datasources: read the request, call one room, return.
import { testDatasource } from '../../datasources/connect.ts'
import {
  changeDatasource,
  createDatasource,
  deleteDatasource,
  disableDatasource,
  enableDatasource,
  getDatasource,
} from '../../datasources/datasources.ts'
import { introspectDatasource } from '../../datasources/introspect.ts'
import type { Handlers } from '../handler.ts'

type Names =
  | 'createDatasource'
  | 'getDatasource'
  | 'changeDatasource'
  | 'deleteDatasource'
  | 'testDatasource'
  | 'introspectDatasource'
  | 'disableDatasource'
  | 'enableDatasource'

type Deps = Parameters<typeof testDatasource>[0]

export function datasourceHandlers(deps: Deps): Pick<Handlers, Names> {
  return {
    createDatasource: (at) => createDatasource(deps, at.call, at.membership, at.body),
    getDatasource: (at) => getDatasource(deps, at.reached),
    changeDatasource: (at) => changeDatasource(deps, at.call, at.reached, at.body),
    deleteDatasource: (at) => deleteDatasource(deps, at.call, at.reached),
    testDatasource: (at) => testDatasource(deps, at.call, at.reached),
    introspectDatasource: (at) => introspectDatasource(deps, at.call, at.reached),
    disableDatasource: (at) => disableDatasource(deps, at.call, at.reached),
    enableDatasource: (at) => enableDatasource(deps, at.call, at.reached),
  }
}
