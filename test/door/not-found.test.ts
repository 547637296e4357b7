// A datasource that the caller may not access must get the same answer as an unknown datasource, byte for byte.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { ROUTES } from '../../src/contract/key-routes.ts'
import { SESSION_ROUTES } from '../../src/contract/signed-in-routes.ts'
import { startApp } from '../support/app.ts'
import type { Answer, TestApp } from '../support/app.ts'

const UNKNOWN = '00000000-0000-4000-8000-000000000000'
const IN_DATASOURCE = Object.entries({ ...ROUTES, ...SESSION_ROUTES }).filter(([, route]) =>
  route.path.includes('{id}'),
)

/** Leaves out the headers that may differ between two answers. */
function comparable(answer: Answer): unknown[] {
  const names = [...answer.headers.keys()].filter((name) => !/^(date|connection|keep-alive)$/.test(name))
  return [answer.status, answer.text, names.sort()]
}

describe('the uniform 404', () => {
  let app: TestApp
  let mine: string
  let id: string
  let otherTeam: string
  const callers = new Map<string, string>()

  before(async () => {
    app = await startApp()
    const owner = await app.person('Owner')
    const stranger = await app.person('Stranger')
    const invited = await app.person('Invited')
    const member = await app.person('Member')
    mine = await app.team(owner, 'Mine')
    otherTeam = await app.team(owner, 'Other')
    await app.join(owner, mine, invited, 'ADMIN', false)
    await app.join(owner, mine, member, 'ADMIN')
    const spec = {
      name: 'explicit',
      type: 'POSTGRES',
      connectionMode: 'DIRECT',
      host: '127.0.0.1',
      port: 1,
      database: 'x',
      username: 'x',
      password: 'x',
      sslMode: 'disable',
      accessMode: 'EXPLICIT',
    }
    id = (await owner.must('POST', `/teams/${mine}/datasources`, spec)).id
    const another = (await owner.must('POST', `/teams/${otherTeam}/datasources`, spec)).id
    callers.set('a stranger', stranger.jwt)
    callers.set('an invited member', invited.jwt)
    callers.set('an admin who is not on the access list', member.jwt)
    callers.set('a stranger’s key', await app.key(stranger))
    callers.set('an owner’s key narrowed to another team', await app.key(owner, { teamIds: [otherTeam] }))
    callers.set('an owner’s key narrowed to another datasource', await app.key(owner, { datasourceIds: [another] }))
    callers.set('the owner, under another team’s path', owner.jwt)
  })
  after(() => app[Symbol.asyncDispose]())

  for (const [name, route] of IN_DATASOURCE) {
    test(`${name} gives the same answer for a datasource without access and for an unknown datasource`, async () => {
      for (const [who, token] of callers) {
        if (token.startsWith('sk_') && !('scope' in route)) continue
        const team = who === 'the owner, under another team’s path' ? otherTeam : mine
        const ask = (datasourceId: string) => {
          const path = route.path
            .replace('{teamId}', team)
            .replace('{id}', datasourceId)
            .replace(/\{\w+\}/g, UNKNOWN)
          const body = route.method === 'GET' || route.method === 'DELETE' ? {} : { body: {} }
          return app.ask(route.method, path, { token, ...body })
        }
        const unreachable = await ask(id)
        assert.equal(unreachable.status, 404, `${who}: ${unreachable.text}`)
        assert.deepEqual(comparable(unreachable), comparable(await ask(UNKNOWN)), who)
        assert.deepEqual(comparable(unreachable), comparable(await ask('nonsense!')), who)
      }
    })
  }

  test('a team of other people and an unknown team get the same 404, and the same 403 for the list of datasources', async () => {
    const token = callers.get('a stranger')
    assert.deepEqual(
      comparable(await app.ask('GET', `/teams/${mine}`, { token })),
      comparable(await app.ask('GET', `/teams/${UNKNOWN}`, { token })),
    )
    const forbidden = await app.ask('GET', `/teams/${mine}/datasources`, { token })
    assert.equal(forbidden.json.code, 'TEAM_FORBIDDEN')
    assert.deepEqual(
      comparable(forbidden),
      comparable(await app.ask('GET', `/teams/${UNKNOWN}/datasources`, { token })),
    )
  })
})
