// Tests what a console requests before and after the sign-in: the sign-in options, an invitation by its token, and
// facts about this service.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { VERSION } from '../../src/config.ts'
import { Instance, SignInOptions } from '../../src/contract/instance-schemas.ts'
import { OPEN_ROUTES } from '../../src/contract/routes-without-token.ts'
import { startApp } from '../support/app.ts'
import { startSmtp } from '../support/mail.ts'

const NOT_LOOPBACK = { HOST: '0.0.0.0', VITRINE_PUBLIC_URL: 'http://127.0.0.1' }

describe('the options of a sign-in', () => {
  test('the options of a sign-in show the state of the store and the settings, and are not cached', async () => {
    await using app = await startApp()
    const before = await app.ask('GET', '/auth/options')
    assert.equal(before.headers.get('cache-control'), 'no-store')
    assert.deepEqual(SignInOptions.strict().parse(before.json), {
      firstAccount: true,
      setupTokenNeeded: false,
      signUp: 'open',
      mail: false,
      password: { min: 8, max: 128 },
      methods: before.json.methods,
    })
    assert.ok(before.json.methods.includes('password'))
    await app.person()
    assert.equal((await app.must('GET', '/auth/options')).firstAccount, false)
  })

  test('the options list the ways to sign in that work at the address of the request', async () => {
    const client = { VITRINE_OIDC_CLIENT_ID: 'id', VITRINE_OIDC_CLIENT_SECRET: 'secret', VITRINE_OIDC_NAME: 'Acme' }
    // Nobody listens at this address. The options must not wait for a provider that does not answer.
    await using app = await startApp({ env: { ...client, VITRINE_OIDC_ISSUER: 'http://127.0.0.1:1' } })
    const { methods, oidcName } = await app.must('GET', '/auth/options')
    assert.deepEqual([methods, oidcName], [['password', 'oidc'], 'Acme'])
    const named = await fetch(`${app.url.replace('127.0.0.1', 'localhost')}/auth/options`)
    assert.deepEqual(SignInOptions.parse(await named.json()).methods, ['password', 'passkey', 'oidc'])
    const person = await app.person()
    assert.equal((await person.must('GET', '/instance')).oidcName, 'Acme')
    const refused = await app.ask('POST', '/auth/sign-in/provider', { body: { provider: 'oidc' } })
    assert.deepEqual([refused.status, refused.json.reason], [403, 'UNAVAILABLE'])
  })

  test('the options require the setup token for the first account if the service is not on loopback', async () => {
    await using smtp = await startSmtp()
    await using app = await startApp({ env: { ...NOT_LOOPBACK, SMTP_URL: smtp.url } })
    const options = await app.must('GET', '/auth/options')
    assert.deepEqual([options.setupTokenNeeded, options.signUp, options.mail], [true, 'invited', true])
  })

  test('the options refuse unknown parameters, and requests from a page of another site', async () => {
    await using app = await startApp()
    assert.equal((await app.ask('GET', '/auth/options?nope=1')).json.code, 'INVALID_REQUEST')
    const refused = await app.ask('GET', '/auth/options', { headers: { origin: 'https://evil.example' } })
    assert.equal(refused.json.code, 'SIGN_IN_REFUSED')
  })
})

describe('an invitation', () => {
  test('an invitation is shown to everybody who has its token, without a session', async () => {
    await using app = await startApp()
    const owner = await app.person('Olga')
    const teamId = await app.team(owner, 'Acme')
    const order = { email: 'New@Example.test', role: 'ADMIN' }
    const { inviteToken, expiresAt } = await owner.must('POST', `/teams/${teamId}/members`, order)
    const answer = await app.ask('GET', `/invitations/${inviteToken}`)
    assert.deepEqual(OPEN_ROUTES.getInvitation.answer.strict().parse(answer.json), {
      team: 'Acme',
      role: 'ADMIN',
      email: 'new@example.test',
      invitedBy: 'Olga',
      expiresAt,
    })
    assert.equal(answer.headers.get('cache-control'), 'no-store')
    // The path needs no token, so neither a valid nor an invalid token changes the answer.
    assert.deepEqual((await owner.ask('GET', `/invitations/${inviteToken}`)).json, answer.json)
    assert.deepEqual((await app.ask('GET', `/invitations/${inviteToken}`, { token: 'a.b.c' })).json, answer.json)
  })

  test('an invitation that was used, withdrawn, replaced or never created gets the same 404', async () => {
    await using app = await startApp()
    const owner = await app.person('Olga')
    const member = await app.person('Bo')
    const teamId = await app.team(owner, 'Acme')
    const invite = (email: string) => owner.must('POST', `/teams/${teamId}/members`, { email, role: 'MEMBER' })
    const used = await invite(member.email)
    await member.must('POST', `/invitations/${used.inviteToken}/accept`)
    const withdrawn = await invite('withdrawn@example.test')
    await owner.must('DELETE', `/teams/${teamId}/invitations/${withdrawn.invitationId}`)
    const replaced = await invite('twice@example.test')
    const newer = await invite('twice@example.test')
    const missing = (await owner.ask('GET', '/teams/00000000-0000-4000-8000-000000000000')).text
    for (const token of [
      used.inviteToken,
      withdrawn.inviteToken,
      replaced.inviteToken,
      'x'.repeat(43),
      '%F0%9F',
      'ä',
    ]) {
      const answer = await app.ask('GET', `/invitations/${encodeURIComponent(token)}`)
      assert.deepEqual([answer.status, answer.text], [404, missing], token)
    }
    assert.equal((await app.ask('GET', `/invitations/${newer.inviteToken}?nope=1`)).json.code, 'INVALID_REQUEST')
    assert.equal((await app.ask('POST', `/invitations/${newer.inviteToken}`)).status, 405)
  })

  test('a client address may guess invitations only a limited number of times', async () => {
    await using app = await startApp({ env: { VITRINE_TRUST_PROXY: '1' } })
    const from = (address: string) => app.ask('GET', '/invitations/guess', { headers: { 'x-forwarded-for': address } })
    const codes = []
    for (let n = 0; n < 61; n++) codes.push((await from(`2001:db8::${n.toString(16)}`)).json.code)
    assert.deepEqual(codes, [...Array<string>(60).fill('NOT_FOUND'), 'RATE_LIMITED'])
    assert.equal((await from('198.51.100.7')).json.code, 'NOT_FOUND')
  })

  test('an invitation ends when the account of the inviter is deleted', async () => {
    await using app = await startApp()
    const [owner, admin] = [await app.person('Olga'), await app.person('Ada')]
    const teamId = await app.team(owner, 'Acme')
    await app.join(owner, teamId, admin, 'ADMIN')
    const order = { email: 'new@example.test', role: 'MEMBER' }
    const { inviteToken } = await admin.must('POST', `/teams/${teamId}/members`, order)
    assert.equal((await app.must('GET', `/invitations/${inviteToken}`)).invitedBy, 'Ada')
    await admin.must('DELETE', '/users/me', { confirm: admin.email })
    assert.equal((await app.ask('GET', `/invitations/${inviteToken}`)).json.code, 'NOT_FOUND')
  })
})

describe('the instance', () => {
  test('the instance shows signed-in people what the operator allows', async () => {
    await using app = await startApp({
      env: { VITRINE_MAX_ROW_CAP: '500', VITRINE_ALLOW_APPLICATION_DEFAULT: '1', VITRINE_SIGNUP: 'open' },
    })
    const ada = await app.person()
    assert.deepEqual(Instance.strict().parse(await ada.must('GET', '/instance')), {
      version: VERSION,
      publicUrl: app.url,
      mail: false,
      model: false,
      signUp: 'open',
      allows: { privateHosts: true, applicationDefault: true, bigqueryEndpoint: false, sshTunnel: true },
      ceilings: { rowCap: 500 },
    })
  })
})
