// Tests every route that takes a token with every kind of caller. Each request has an unknown parameter, so that it
// changes nothing: a caller with access gets 400, or an earlier refusal such as NOT_FOUND. Other callers are refused
// before the parameter is checked.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import type { Scope } from '../../src/contract/route-type.ts'
import { OPEN_ROUTES } from '../../src/contract/routes-without-token.ts'
import { ROUTES } from '../../src/contract/key-routes.ts'
import { SESSION_ROUTES } from '../../src/contract/signed-in-routes.ts'
import type { OperationId } from '../../src/operations/operation-types.ts'
import { SCOPES, startApp } from '../support/app.ts'
import type { Person, TestApp } from '../support/app.ts'

const PASS = 'INVALID_REQUEST'
const UNKNOWN = '00000000-0000-4000-8000-000000000000'

type Headers = Readonly<Record<string, string>>

/**
 * The scope that an API key needs (null if no key may call the operation). Then the codes for a stranger, an INVITED
 * member, a MEMBER, an ADMIN and an OWNER.
 */
type Row = readonly [Scope | null, string, string, string, string, string]

const anyRole = (scope: Scope | null): Row => [scope, PASS, PASS, PASS, PASS, PASS]
const TEAM_OPEN: Row = [null, 'NOT_FOUND', PASS, PASS, PASS, PASS]
const TEAM_MEMBER: Row = [null, 'NOT_FOUND', 'TEAM_NOT_OPENED', PASS, PASS, PASS]
const TEAM_ADMIN: Row = [null, 'NOT_FOUND', 'TEAM_NOT_OPENED', 'ROLE_REQUIRED', PASS, PASS]
const TEAM_OWNER: Row = [null, 'NOT_FOUND', 'TEAM_NOT_OPENED', 'ROLE_REQUIRED', 'ROLE_REQUIRED', PASS]
const datasource = (scope: Scope | null, pass = PASS): Row => [scope, 'NOT_FOUND', 'NOT_FOUND', pass, pass, pass]
/** The datasource of this test was never introspected. Operations that need a catalog answer with this code. */
const QUERY_PASS = 'NOT_CONNECTED'
const datasourceAdmin = (pass = PASS): Row => [null, 'NOT_FOUND', 'NOT_FOUND', 'ROLE_REQUIRED', pass, pass]
const DATASOURCE_ADMIN = datasourceAdmin()

const MATRIX = {
  getInstance: anyRole(null),
  getAccount: anyRole('profile'),
  listTeams: anyRole('data:schema'),
  listDatasources: ['data:schema', 'TEAM_FORBIDDEN', 'TEAM_NOT_OPENED', PASS, PASS, PASS],
  describeDatasource: datasource('data:schema'),
  runQuery: datasource('data:read', QUERY_PASS),
  changeAccount: anyRole(null),
  deleteAccount: anyRole(null),
  listKeys: anyRole(null),
  createKey: anyRole(null),
  // The key in the path does not exist.
  changeKey: [null, 'NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND'],
  rotateKey: [null, 'NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND'],
  revokeKey: anyRole(null),
  listGrants: anyRole(null),
  // The grant in the path does not exist.
  narrowGrant: [null, 'NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND'],
  endGrant: anyRole(null),
  createTeam: anyRole(null),
  acceptInvitation: anyRole(null),
  getTeam: TEAM_OPEN,
  openTeam: TEAM_OPEN,
  leaveTeam: TEAM_OPEN,
  listMembers: TEAM_MEMBER,
  changeTeam: TEAM_ADMIN,
  listTeamKeys: TEAM_ADMIN,
  endTeamForKey: TEAM_ADMIN,
  listTeamGrants: TEAM_ADMIN,
  endTeamForGrant: TEAM_ADMIN,
  addMember: TEAM_ADMIN,
  changeMember: TEAM_ADMIN,
  removeMember: TEAM_ADMIN,
  removeInvitation: TEAM_ADMIN,
  createDatasource: TEAM_ADMIN,
  listAudit: TEAM_ADMIN,
  getAuditItem: TEAM_ADMIN,
  exportAudit: TEAM_ADMIN,
  listRefusals: TEAM_ADMIN,
  listRequests: TEAM_ADMIN,
  // The request in the path does not exist.
  closeRequest: [null, 'NOT_FOUND', 'TEAM_NOT_OPENED', 'ROLE_REQUIRED', 'NOT_FOUND', 'NOT_FOUND'],
  requestExposure: datasource(null),
  listWebhooks: TEAM_ADMIN,
  createWebhook: TEAM_ADMIN,
  // The webhook in the path does not exist.
  changeWebhook: [null, 'NOT_FOUND', 'TEAM_NOT_OPENED', 'ROLE_REQUIRED', 'NOT_FOUND', 'NOT_FOUND'],
  deleteWebhook: [null, 'NOT_FOUND', 'TEAM_NOT_OPENED', 'ROLE_REQUIRED', 'NOT_FOUND', 'NOT_FOUND'],
  testWebhook: [null, 'NOT_FOUND', 'TEAM_NOT_OPENED', 'ROLE_REQUIRED', 'NOT_FOUND', 'NOT_FOUND'],
  listDeliveries: [null, 'NOT_FOUND', 'TEAM_NOT_OPENED', 'ROLE_REQUIRED', 'NOT_FOUND', 'NOT_FOUND'],
  listActivity: anyRole(null),
  getUsage: TEAM_MEMBER,
  deleteTeam: TEAM_OWNER,
  checkQuery: datasource(null, QUERY_PASS),
  getDatasource: DATASOURCE_ADMIN,
  changeDatasource: DATASOURCE_ADMIN,
  deleteDatasource: DATASOURCE_ADMIN,
  tryConnection: TEAM_ADMIN,
  getTest: DATASOURCE_ADMIN,
  testDatasource: DATASOURCE_ADMIN,
  introspectDatasource: DATASOURCE_ADMIN,
  listJobs: DATASOURCE_ADMIN,
  getJob: DATASOURCE_ADMIN,
  cancelJob: DATASOURCE_ADMIN,
  disableDatasource: DATASOURCE_ADMIN,
  enableDatasource: DATASOURCE_ADMIN,
  viewAsAgent: datasource(null),
  getCatalog: datasourceAdmin(QUERY_PASS),
  getExposure: DATASOURCE_ADMIN,
  putExposure: DATASOURCE_ADMIN,
  listExposureVersions: DATASOURCE_ADMIN,
  getExposureVersion: DATASOURCE_ADMIN,
  getExposureGrants: datasourceAdmin(QUERY_PASS),
  getDrift: DATASOURCE_ADMIN,
  previewExposure: datasourceAdmin(QUERY_PASS),
  exposureFromRefusal: DATASOURCE_ADMIN,
  profileDatasource: datasourceAdmin(QUERY_PASS),
  getDocumentation: DATASOURCE_ADMIN,
  putDocumentation: datasourceAdmin('NOT_FOUND'),
  generateDocumentation: datasourceAdmin(QUERY_PASS),
  acceptDocumentation: DATASOURCE_ADMIN,
  listPublications: DATASOURCE_ADMIN,
  publishDocumentation: DATASOURCE_ADMIN,
  getAccess: DATASOURCE_ADMIN,
  putAccess: DATASOURCE_ADMIN,
} as const satisfies Record<OperationId, Row>

const TABLE = { ...ROUTES, ...SESSION_ROUTES }
const NAMES = Object.keys(TABLE) as OperationId[]

describe('the access matrix', () => {
  let app: TestApp
  let teamId: string
  let id: string
  /** The callers in the order of a row. */
  let people: Person[]
  const keys = new Map<Scope, string>()
  /** For each person, a key with all scopes. */
  let fullKeys: string[]
  /** Tokens whose session has ended, whose key was revoked, or whose account was deleted. */
  let ended: string[]
  /**
   * The first datasource is only for OWNERs. The second has an empty access list. The third belongs to another team of
   * the same OWNER.
   */
  let ownersId: string
  let listedId: string
  let ofOtherTeam: { teamId: string; id: string }

  before(async () => {
    app = await startApp()
    const [stranger, invited, member, admin, owner] = await Promise.all(
      ['Stranger', 'Invited', 'Member', 'Admin', 'Owner'].map((name) => app.person(name)),
    )
    assert.ok(stranger && invited && member && admin && owner)
    people = [stranger, invited, member, admin, owner]
    teamId = await app.team(owner)
    await app.join(owner, teamId, invited, 'ADMIN', false)
    await app.join(owner, teamId, member, 'MEMBER')
    await app.join(owner, teamId, admin, 'ADMIN')
    const connect = async (team: string, more: object = {}): Promise<string> => {
      const shop = { name: 'shop', type: 'POSTGRES', connectionMode: 'DIRECT', host: '127.0.0.1', port: 1 }
      const login = { database: 'shop', username: 'reader', password: 'pw', sslMode: 'disable' }
      const access = { accessMode: 'ROLE_BASED', minRole: 'MEMBER' }
      return (await owner.must('POST', `/teams/${team}/datasources`, { ...shop, ...login, ...access, ...more })).id
    }
    id = await connect(teamId)
    ownersId = await connect(teamId, { minRole: 'OWNER' })
    listedId = await connect(teamId, { accessMode: 'EXPLICIT' })
    const otherTeam = await app.team(owner, 'Other')
    ofOtherTeam = { teamId: otherTeam, id: await connect(otherTeam) }
    for (const scope of SCOPES) keys.set(scope, await app.key(owner, { scopes: [scope] }))
    fullKeys = await Promise.all(people.map((person) => app.key(person)))
    ended = await makeEndedTokens()
  })

  async function makeEndedTokens(): Promise<string[]> {
    const [out, gone] = await Promise.all([app.person('Out'), app.person('Gone')])
    const revoked = await app.key(out)
    const { id: keyId } = (await out.must('GET', '/users/me/keys'))[0]
    await out.must('DELETE', `/users/me/keys/${keyId}`)
    await app.must('POST', '/auth/sign-out', { body: {}, headers: { cookie: out.cookie, origin: app.url } })
    const ofGone = await app.key(gone)
    await gone.must('DELETE', '/users/me', { confirm: gone.email })
    return [out.jwt, revoked, gone.jwt, ofGone]
  }

  after(() => app[Symbol.asyncDispose]())

  const request = (name: OperationId, token?: string, at: { team?: string; id?: string; headers?: Headers } = {}) => {
    const { method, path } = TABLE[name]
    const filled = path
      .replace('{teamId}', at.team ?? teamId)
      .replace('{id}', at.id ?? id)
      .replace('{accountId}', people[2]?.id ?? UNKNOWN)
      .replace(/\{\w+\}/g, UNKNOWN)
    const hasBody = method !== 'GET' && method !== 'DELETE'
    const options = { token, headers: at.headers ?? {}, ...(hasBody ? { body: {} } : {}) }
    return { method, path: `${filled}?nope=1`, options }
  }
  const ask = (...args: Parameters<typeof request>) => {
    const { method, path, options } = request(...args)
    return app.ask(method, path, options)
  }
  /** Calls the operation without HTTP. */
  const operate = (...args: Parameters<typeof request>) => {
    const { method, path, options } = request(...args)
    return app.operate(method, path, options)
  }
  /** Returns the codes that the people get with an access token. */
  const codesOf = (name: OperationId, at: { team?: string; id?: string } = {}) =>
    Promise.all(people.map(async (person) => (await ask(name, person.jwt, at)).json.code))

  test('the access matrix has a row for every operation of openapi.json', () => {
    const document = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'))
    // Other tests cover the routes under /auth, which take a cookie or nothing, and the OAuth routes of agents.
    const operations = Object.entries<Record<string, { operationId?: string }>>(document.paths)
      .filter(([path]) => !/^\/(auth|\.well-known)\//.test(path))
      .flatMap(([, path]) => Object.values(path))
      .flatMap((operation) => operation.operationId ?? [])
    assert.deepEqual(operations.sort(), [...Object.keys(MATRIX), ...Object.keys(OPEN_ROUTES)].sort())
    assert.deepEqual([...NAMES].sort(), Object.keys(MATRIX).sort())
    const open = Object.entries<Record<string, { operationId?: string }>>(document.paths)
      .filter(([, path]) => Object.values(path).some((operation) => operation.operationId === undefined))
      .map(([path]) => path)
    assert.deepEqual(open.sort(), ['/docs', '/health/live', '/health/ready', '/openapi.json'])
  })

  for (const name of NAMES) {
    const [scope, ...byPerson] = MATRIX[name]

    test(`${name} gives the same 401 to a request without a token, with an invalid token, and with only the cookie`, async () => {
      const cookie = people[4]?.cookie ?? ''
      const answers = [
        await ask(name),
        await ask(name, 'sk_live_nonsense'),
        await ask(name, 'a.b.c'),
        await ask(name, undefined, { headers: { cookie, origin: app.url } }),
        ...(await Promise.all(ended.map((token) => ask(name, token)))),
      ]
      for (const answer of answers) {
        assert.equal(answer.status, 401)
        assert.equal(answer.text, answers[0]?.text)
        assert.equal(answer.json.code, 'UNAUTHENTICATED')
        assert.match(answer.headers.get('www-authenticate') ?? '', /^Bearer\b/)
      }
    })

    test(`${name} gives the expected code to an API key of each scope`, async () => {
      for (const granted of SCOPES) {
        const answer = await ask(name, keys.get(granted))
        if (scope === null) {
          assert.equal(answer.status, 403)
          assert.deepEqual(answer.json, {
            error: 'API keys cannot be used for this endpoint',
            code: 'SCOPE_REQUIRED',
          })
        } else if (granted === scope) assert.equal(answer.json.code, byPerson[4], answer.text)
        else assert.deepEqual([answer.json.code, answer.json.requiredScope], ['SCOPE_REQUIRED', scope])
      }
    })

    test(`${name} gives the expected code to an access token of each role`, async () => {
      assert.deepEqual(await codesOf(name), byPerson)
    })

    test(`${name} gives every caller the same answer without HTTP`, async () => {
      const tokens = [
        undefined,
        'sk_live_nonsense',
        ...ended,
        ...keys.values(),
        ...fullKeys,
        ...people.map((person) => person.jwt),
      ]
      const places = [
        {},
        { id: ownersId },
        { id: listedId },
        { team: ofOtherTeam.teamId },
        { team: ofOtherTeam.teamId, id: ofOtherTeam.id },
      ]
      for (const at of TABLE[name].path.includes('/datasources/{id}') ? places : [{}]) {
        const answersOf = async (token?: string) => [
          (await operate(name, token, at)).json,
          (await ask(name, token, at)).json,
        ]
        for (const [operation, http] of await Promise.all(tokens.map(answersOf))) assert.deepEqual(operation, http)
      }
    })

    if (scope !== null) {
      test(`${name} gives the expected code to an API key of a person of each role`, async () => {
        assert.deepEqual(await Promise.all(fullKeys.map(async (key) => (await ask(name, key)).json.code)), byPerson)
      })
    }

    if (TABLE[name].path.includes('/datasources/{id}')) {
      const [, , , , owner] = byPerson
      const NONE = 'NOT_FOUND'

      test(`${name} answers 404 to a role below minRole, to a person who is not on the access list, and in another team`, async () => {
        assert.deepEqual(await codesOf(name, { id: ownersId }), [NONE, NONE, NONE, NONE, owner])
        assert.deepEqual(await codesOf(name, { id: listedId }), [NONE, NONE, NONE, NONE, owner])
        assert.deepEqual(await codesOf(name, { id: ofOtherTeam.id }), [NONE, NONE, NONE, NONE, NONE])
        assert.deepEqual(await codesOf(name, { team: ofOtherTeam.teamId }), [NONE, NONE, NONE, NONE, NONE])
        assert.deepEqual(await codesOf(name, { team: ofOtherTeam.teamId, id: ofOtherTeam.id }), [
          NONE,
          NONE,
          NONE,
          NONE,
          owner,
        ])
      })
    }
  }

  test('for every route of a datasource, a change of the access list is effective at the next request', async () => {
    const [, , member, admin, owner] = people
    assert.ok(member && admin && owner)
    const path = `/teams/${teamId}/datasources/${listedId}/access`
    const names = NAMES.filter((name) => TABLE[name].path.includes('/datasources/{id}'))
    for (const name of names) {
      await owner.must('PUT', path, { accountIds: [member.id, admin.id] })
      const [, , , asMember, asAdmin] = MATRIX[name]
      const codes = await codesOf(name, { id: listedId })
      assert.deepEqual(codes.slice(2, 4), [asMember, asAdmin], name)
      await owner.must('PUT', path, { accountIds: [] })
      assert.deepEqual((await codesOf(name, { id: listedId })).slice(2, 4), ['NOT_FOUND', 'NOT_FOUND'], name)
    }
  })
})
