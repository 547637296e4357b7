// A request is refused first for its path (404), then for the state of the datasource (409), then for its body (400).
// Source: docs/session.md#order-of-refusals. Every route with a body has a row here.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { ROUTES } from '../../src/contract/key-routes.ts'
import { SESSION_ROUTES } from '../../src/contract/signed-in-routes.ts'
import type { OperationId } from '../../src/operations/operation-types.ts'
import { startApp, type Person, type TestApp } from '../support/app.ts'

const TABLE = { ...ROUTES, ...SESSION_ROUTES }
const UNKNOWN = '00000000-0000-4000-8000-000000000000'
const BAD = 'INVALID_REQUEST'

/** The codes for a bad body: on a new datasource, on a new and disabled datasource, and on an unknown path. */
interface Codes {
  readonly fresh: string
  readonly disabled?: string
  readonly unknown?: string
}

const OF_DATASOURCE: Codes = { fresh: BAD, disabled: BAD, unknown: 'NOT_FOUND' }
const NEEDS_CATALOG: Codes = { fresh: 'NOT_CONNECTED', disabled: 'DATASOURCE_DISABLED', unknown: 'NOT_FOUND' }
const OF_TEAM: Codes = { fresh: BAD, unknown: 'NOT_FOUND' }

const ROWS: Readonly<Partial<Record<OperationId, Codes>>> = {
  runQuery: NEEDS_CATALOG,
  checkQuery: NEEDS_CATALOG,
  profileDatasource: NEEDS_CATALOG,
  generateDocumentation: NEEDS_CATALOG,
  introspectDatasource: { fresh: BAD, disabled: 'DATASOURCE_DISABLED', unknown: 'NOT_FOUND' },
  // A preview does not use the database, so a disabled datasource does not matter.
  previewExposure: { fresh: 'NOT_CONNECTED', disabled: 'NOT_CONNECTED', unknown: 'NOT_FOUND' },
  // The table in the path does not exist.
  putDocumentation: { fresh: 'NOT_FOUND', disabled: 'NOT_FOUND', unknown: 'NOT_FOUND' },
  acceptDocumentation: OF_DATASOURCE,
  publishDocumentation: OF_DATASOURCE,
  putExposure: OF_DATASOURCE,
  putAccess: OF_DATASOURCE,
  changeDatasource: OF_DATASOURCE,
  createDatasource: OF_TEAM,
  tryConnection: OF_TEAM,
  changeTeam: OF_TEAM,
  deleteTeam: OF_TEAM,
  addMember: OF_TEAM,
  // The member, key or grant in the path does not exist.
  changeMember: { fresh: 'NOT_FOUND', unknown: 'NOT_FOUND' },
  changeKey: { fresh: 'NOT_FOUND' },
  rotateKey: { fresh: 'NOT_FOUND' },
  narrowGrant: { fresh: 'NOT_FOUND' },
  changeAccount: { fresh: BAD },
  requestExposure: OF_DATASOURCE,
  // The request in the path does not exist.
  closeRequest: { fresh: 'NOT_FOUND', unknown: 'NOT_FOUND' },
  createWebhook: OF_TEAM,
  // The webhook in the path does not exist.
  changeWebhook: { fresh: 'NOT_FOUND', unknown: 'NOT_FOUND' },
  deleteAccount: { fresh: BAD },
  createKey: { fresh: BAD },
  createTeam: { fresh: BAD },
}

describe('the order of refusals', () => {
  let app: TestApp
  let owner: Person
  let teamId: string
  let fresh: string
  let disabled: string

  before(async () => {
    app = await startApp()
    owner = await app.person('Olga')
    teamId = await app.team(owner)
    const shop = { name: 'shop', type: 'POSTGRES', connectionMode: 'DIRECT', host: '127.0.0.1', port: 1 }
    const order = { ...shop, database: 'shop', username: 'reader', password: 'pw', sslMode: 'disable' }
    const access = { accessMode: 'ROLE_BASED', minRole: 'MEMBER' }
    const make = async () => (await owner.must('POST', `/teams/${teamId}/datasources`, { ...order, ...access })).id
    fresh = await make()
    disabled = await make()
    await owner.must('POST', `/teams/${teamId}/datasources/${disabled}/disable`)
  })
  after(() => app[Symbol.asyncDispose]())

  const codeOf = async (name: OperationId, id: string, team = teamId) => {
    const { method, path } = TABLE[name]
    const filled = path
      .replace('{teamId}', team)
      .replace('{id}', id)
      .replace(/\{\w+\}/g, UNKNOWN)
    const options = { token: owner.jwt, body: { nope: [1] } }
    const { code } = (await app.ask(method, filled, options)).json
    assert.equal((await app.operate(method, filled, options)).json.code, code, 'the operation answers like HTTP')
    return code
  }

  test('every route with a body has a row in the test of the order of refusals', () => {
    const withBody = Object.entries(TABLE).flatMap(([name, route]) => ('body' in route ? [name] : []))
    assert.deepEqual([...withBody, 'introspectDatasource'].sort(), Object.keys(ROWS).sort())
  })

  for (const [name, row] of Object.entries(ROWS) as [OperationId, Codes][]) {
    test(`${name} answers a bad body with the codes ${JSON.stringify(row)}`, async () => {
      assert.equal(await codeOf(name, fresh), row.fresh)
      if (row.disabled !== undefined) assert.equal(await codeOf(name, disabled), row.disabled)
      if (row.unknown === undefined) return
      assert.equal(await codeOf(name, UNKNOWN), TABLE[name].path.includes('{id}') ? 'NOT_FOUND' : row.fresh)
      assert.equal(await codeOf(name, fresh, UNKNOWN), row.unknown)
    })
  }
})
