// Bad input about accounts, teams and keys gets the status of docs/errors.md, and nothing is stored.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startApp, type Person, type TestApp } from '../support/app.ts'

const UNKNOWN = '00000000-0000-4000-8000-000000000000'

describe('bad input about people', () => {
  let app: TestApp
  let ada: Person
  let eve: Person
  let bo: Person
  let teamId: string
  let foreignId: string

  before(async () => {
    app = await startApp()
    ;[ada, eve, bo] = await Promise.all([app.person('Ada'), app.person('Eve'), app.person('Bo')])
    teamId = await app.team(ada, 'Acme')
    foreignId = await app.team(eve, 'Foreign')
    await app.join(ada, teamId, bo)
  })
  after(() => app[Symbol.asyncDispose]())

  const codeOf = async (person: Person, method: string, path: string, body?: unknown) => {
    const answer = await person.ask(method, path, body)
    return [answer.status, answer.json.code]
  }
  /** Returns the stored teams and keys, as a string that can be compared. */
  const state = async () =>
    JSON.stringify([
      await ada.must('GET', `/teams/${teamId}`),
      await ada.must('GET', `/teams/${teamId}/members`),
      await ada.must('GET', '/users/me/keys'),
      await eve.must('GET', '/teams'),
    ])

  const cases = (): [string, Person, string, string, unknown, number, string][] => [
    [
      'an unknown role',
      ada,
      'POST',
      `/teams/${teamId}/members`,
      { email: 'x@y.example', role: 'BOSS' },
      400,
      'INVALID_REQUEST',
    ],
    [
      'a role in small letters',
      ada,
      'PATCH',
      `/teams/${teamId}/members/${bo.id}`,
      { role: 'admin' },
      400,
      'INVALID_REQUEST',
    ],
    [
      'an address with a line break',
      ada,
      'POST',
      `/teams/${teamId}/members`,
      { email: 'x\r\nBcc: y@z.example', role: 'MEMBER' },
      400,
      'INVALID_REQUEST',
    ],
    [
      'two addresses',
      ada,
      'POST',
      `/teams/${teamId}/members`,
      { email: 'a@b.example,c@d.example', role: 'MEMBER' },
      400,
      'INVALID_REQUEST',
    ],
    [
      'a person who is already a member',
      ada,
      'POST',
      `/teams/${teamId}/members`,
      { email: bo.email.toUpperCase(), role: 'MEMBER' },
      409,
      'CONFLICT',
    ],
    ['an unknown member', ada, 'PATCH', `/teams/${teamId}/members/${UNKNOWN}`, { role: 'ADMIN' }, 404, 'NOT_FOUND'],
    [
      'a member of another team',
      ada,
      'PATCH',
      `/teams/${teamId}/members/${eve.id}`,
      { role: 'ADMIN' },
      404,
      'NOT_FOUND',
    ],
    ['the last OWNER demoted', ada, 'PATCH', `/teams/${teamId}/members/${ada.id}`, { role: 'MEMBER' }, 409, 'CONFLICT'],
    ['the last OWNER leaving', ada, 'POST', `/teams/${teamId}/leave`, undefined, 409, 'CONFLICT'],
    ['the last OWNER deleted', ada, 'DELETE', '/users/me', { confirm: ada.email }, 409, 'CONFLICT'],
    ['an account without confirm', bo, 'DELETE', '/users/me', {}, 403, 'REAUTHENTICATION_REQUIRED'],
    [
      'another account’s address as confirm',
      bo,
      'DELETE',
      '/users/me',
      { confirm: ada.email },
      403,
      'REAUTHENTICATION_REQUIRED',
    ],
    [
      'another team’s slug as confirm',
      ada,
      'DELETE',
      `/teams/${teamId}`,
      { confirm: 'foreign' },
      403,
      'REAUTHENTICATION_REQUIRED',
    ],
    [
      'a slug that another team has',
      ada,
      'PATCH',
      `/teams/${teamId}`,
      { slug: 'foreign', name: 'New' },
      409,
      'CONFLICT',
    ],
    ['the slug of another team as its id', ada, 'GET', '/teams/foreign', undefined, 404, 'NOT_FOUND'],
    ['the slug of the caller’s own team as its id', ada, 'GET', '/teams/acme', undefined, 404, 'NOT_FOUND'],
    ['a stranger’s team', ada, 'PATCH', `/teams/${foreignId}`, { name: 'Mine' }, 404, 'NOT_FOUND'],
    [
      'a key with an unknown scope',
      ada,
      'POST',
      '/users/me/keys',
      { name: 'k', scopes: ['data:write'] },
      400,
      'INVALID_REQUEST',
    ],
    ['a key without a scope', ada, 'POST', '/users/me/keys', { name: 'k', scopes: [] }, 400, 'INVALID_REQUEST'],
    [
      'a key that expired yesterday',
      ada,
      'POST',
      '/users/me/keys',
      { name: 'k', scopes: ['profile'], expiresAt: new Date(Date.now() - 864e5).toISOString() },
      400,
      'INVALID_REQUEST',
    ],
    [
      'a key with an invalid expiry time',
      ada,
      'POST',
      '/users/me/keys',
      { name: 'k', scopes: ['profile'], expiresAt: 'tomorrow' },
      400,
      'INVALID_REQUEST',
    ],
    [
      'a key for a stranger’s team',
      ada,
      'POST',
      '/users/me/keys',
      { name: 'k', scopes: ['profile'], teamIds: [foreignId] },
      400,
      'INVALID_REQUEST',
    ],
    ['an unknown key rotated', ada, 'POST', `/users/me/keys/${UNKNOWN}/rotate`, {}, 404, 'NOT_FOUND'],
    ['an unknown invitation', bo, 'POST', '/invitations/nonsense/accept', undefined, 404, 'NOT_FOUND'],
    [
      'an unknown invitation revoked',
      ada,
      'DELETE',
      `/teams/${teamId}/invitations/${UNKNOWN}`,
      undefined,
      404,
      'NOT_FOUND',
    ],
  ]

  test('bad input about people is refused with its code, and changes nothing', async () => {
    const before = await state()
    for (const [title, person, method, path, body, status, code] of cases()) {
      assert.deepEqual(await codeOf(person, method, path, body), [status, code], title)
      assert.equal(await state(), before, title)
    }
  })

  test('an invitation fails for another address, at its second use, and after it was revoked', async () => {
    const invite = async (email: string) =>
      await ada.must('POST', `/teams/${teamId}/members`, { email, role: 'MEMBER' })
    const cy = await app.person('Cy')
    const { inviteToken } = await invite(cy.email)
    const accept = (person: Person, token = inviteToken) => codeOf(person, 'POST', `/invitations/${token}/accept`)
    assert.deepEqual(await accept(eve), [404, 'NOT_FOUND'])
    assert.deepEqual((await accept(cy))[0], 200)
    assert.deepEqual(await accept(cy), [404, 'NOT_FOUND'])
    const dee = await app.person('Dee')
    const first = await invite(dee.email)
    const second = await invite(dee.email)
    assert.deepEqual(await accept(dee, first.inviteToken), [404, 'NOT_FOUND'], 'a newer invitation replaced it')
    await ada.must('DELETE', `/teams/${teamId}/invitations/${second.invitationId}`)
    assert.deepEqual(await accept(dee, second.inviteToken), [404, 'NOT_FOUND'])
  })

  test('after the OWNER has made a colleague OWNER, the first OWNER may leave the team', async () => {
    await ada.must('PATCH', `/teams/${teamId}/members/${bo.id}`, { role: 'OWNER' })
    await ada.must('PATCH', `/teams/${teamId}/members/${ada.id}`, { role: 'MEMBER' })
    assert.deepEqual(await codeOf(ada, 'PATCH', `/teams/${teamId}`, { name: 'Mine' }), [403, 'ROLE_REQUIRED'])
    assert.deepEqual(await codeOf(ada, 'PATCH', `/teams/${teamId}/members/${bo.id}`, { role: 'MEMBER' }), [
      403,
      'ROLE_REQUIRED',
    ])
    assert.equal((await ada.ask('POST', `/teams/${teamId}/leave`)).status, 204)
    assert.deepEqual(await codeOf(bo, 'POST', `/teams/${teamId}/leave`), [409, 'CONFLICT'])
  })
})
