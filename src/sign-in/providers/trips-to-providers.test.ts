// A certified OpenID Connect provider runs in this process, and a second provider that lies.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { SignJWT } from 'jose'
import { z } from 'zod'
import { browserOf as testBrowser, type TestBrowser } from '../../../test/support/browser.ts'
import { makeCertificates } from '../../../test/support/certificates.ts'
import { startSmtp, tokenIn } from '../../../test/support/mail.ts'
import { CLIENT, newKey, signed, startOidc, startRogue, type Rogue, type TestOidc } from '../../../test/support/oidc.ts'
import { auth, codeOf, openRooms, PASSWORD, refusal, someone, type Rooms } from '../../../test/support/people.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../../test/support/stores.ts'
import { totp } from '../../../test/support/totp.ts'
import { readDetail } from '../../audit/row-detail.ts'
import { dial } from '../../drivers/allowed-addresses.ts'
import { asId, type TeamId } from '../../ids.ts'
import { storedFlag } from '../../store/better-auth-booleans.ts'
import { storedTime } from '../../store/better-auth-times.ts'
import { addMember } from '../../teams/invitations.ts'
import { requireMembership } from '../../teams/require-membership.ts'
import { createTeam } from '../../teams/teams.ts'
import { openSignIn } from '../sign-in.ts'
import { requireAnotherWay, waysOf } from '../ways-to-sign-in.ts'

const ORIGIN = 'http://127.0.0.1:3000'
const EMAIL = 'ada@example.test'
const browserOf = (rooms: Rooms) => testBrowser(rooms, ORIGIN)
const ADA = { email: EMAIL, email_verified: true, name: 'Ada' }

const rogueEnv = ({ url }: Pick<Rogue, 'url'>) => ({
  VITRINE_OIDC_ISSUER: url,
  VITRINE_OIDC_CLIENT_ID: CLIENT.id,
  VITRINE_OIDC_CLIENT_SECRET: CLIENT.secret,
})

async function leave(browser: TestBrowser, more: object = {}, provider = 'oidc'): Promise<string> {
  return (await browser.ask('POST sign-in/provider', { provider, ...more })).json.url
}

/** Sends the provider’s answer to the callback. Returns the path to which the service redirects. */
async function comeBack(browser: TestBrowser, back: URL): Promise<string> {
  const { location } = await browser.ask(`GET ${back.pathname.replace('/auth/', '')}${back.search}`)
  return location ?? ''
}

async function signIn(browser: TestBrowser, oidc: TestOidc, sub: string, more: object = {}): Promise<string> {
  oidc.next = sub
  return await comeBack(browser, await oidc.visit(await leave(browser, more)))
}

const Address = z.object({ url: z.string() })
const failureIn = (location: string) => new URL(location, ORIGIN).searchParams.get('failed')
const who = async (browser: TestBrowser) => (await browser.ask('GET get-session')).json?.user.email ?? null
const methodsOf = (rooms: Rooms) => rooms.store.db.selectFrom('sign_in_methods').selectAll().execute()

const rowsOf = async ({ store, audit }: Rooms) => {
  await audit.flush()
  const rows = await store.db.selectFrom('audit').selectAll().orderBy('id').execute()
  return rows.map((row) => ({ ...row, changes: readDetail(row.detail).changes ?? {} }))
}

for (const dialect of DIALECTS) {
  describe(`providers on ${dialect}`, () => {
    let source: StoreSource
    let oidc: TestOidc
    before(async () => {
      source = await storeSource(dialect)
      oidc = await startOidc()
    })
    after(async () => {
      await oidc[Symbol.asyncDispose]()
      await source[Symbol.asyncDispose]()
    })

    test('the first sign-in at a provider creates an account, later ones find it, and no token is stored', async () => {
      await using rooms = await openRooms(source, oidc.env)
      oidc.people.set('1', ADA)
      const { json: options } = await browserOf(rooms).ask('GET options')
      assert.deepEqual([options.methods, options.oidcName], [['password', 'oidc'], 'Acme'])
      const browser = browserOf(rooms)
      assert.equal(
        await signIn(browser, oidc, '1', { callbackURL: '/app/settings/keys?a=b' }),
        '/app/settings/keys?a=b',
      )
      const { json } = await browser.ask('GET get-session')
      assert.deepEqual([json.user.email, json.user.name, json.user.emailVerified], [EMAIL, 'Ada', true])
      // The address at the provider may change, but the subject does not.
      oidc.people.set('1', { ...ADA, email: 'new@example.test' })
      const other = browserOf(rooms)
      assert.equal(await signIn(other, oidc, '1'), '/app/')
      assert.equal(await who(other), EMAIL)
      const [method, ...none] = await methodsOf(rooms)
      assert.deepEqual(none, [])
      assert.deepEqual([method?.accountId, method?.label], [`${oidc.issuer}#1`, 'new@example.test'])
      assert.deepEqual([method?.accessToken, method?.refreshToken, method?.idToken], [null, null, null])
      assert.deepEqual(
        (await rowsOf(rooms)).map(({ action, changes }) => [action, changes]),
        [
          ['signUp', { provider: { from: null, to: 'Acme' } }],
          ['signIn', { method: { from: null, to: 'Acme' } }],
          ['signIn', { method: { from: null, to: 'Acme' } }],
        ],
      )
    })

    test('a first sign-in at a provider is subject to VITRINE_SIGNUP, like a sign-up with a password', async () => {
      oidc.people.set('1', ADA)
      await using first = await openRooms(source, { ...oidc.env, VITRINE_SIGNUP: 'closed' })
      assert.equal(await signIn(browserOf(first), oidc, '1'), '/app/', 'the first account')
      oidc.people.set('2', { email: 'bob@example.test', email_verified: true })
      assert.equal(failureIn(await signIn(browserOf(first), oidc, '2')), 'SIGN_UP_CLOSED')

      await using rooms = await openRooms(source, { ...oidc.env, VITRINE_SIGNUP: 'invited' })
      const owner = await someone(rooms, 'owner@example.test')
      assert.equal(failureIn(await signIn(browserOf(rooms), oidc, '2')), 'INVITATION_NEEDED')
      const team = await createTeam(rooms, owner, { name: 'Team' })
      const order = { email: 'bob@example.test', role: 'MEMBER' } as const
      const { inviteToken = '' } = await addMember(
        rooms,
        owner,
        await requireMembership(rooms, owner, asId<TeamId>(team.id)),
        order,
      )
      const wrong = await signIn(browserOf(rooms), oidc, '1', { inviteToken })
      assert.equal(failureIn(wrong), 'INVITATION_NEEDED', 'an invitation of another address')
      assert.equal(await signIn(browserOf(rooms), oidc, '2', { inviteToken }), '/app/')
    })

    test('if a provider is switched off during a sign-in, the person sees a page that says so', async () => {
      await using rooms = await openRooms(source, { ...oidc.env, VITRINE_SIGNUP: 'open' })
      oidc.people.set('1', ADA)
      oidc.next = '1'
      const browser = browserOf(rooms)
      const back = await oidc.visit(await leave(browser, { callbackURL: '/app/settings/keys' }))
      const trusted = { reason: () => null }
      const signIn = openSignIn({ ...rooms, clock: trusted, config: { ...rooms.config, providers: [] } })
      const restarted = testBrowser({ signIn }, ORIGIN)
      for (const [name, value] of browser.jar) restarted.jar.set(name, value)
      const page = await comeBack(restarted, back)
      assert.equal(page, '/app/sign-in?failed=SWITCHED_OFF&provider=oidc&next=%2Fapp%2Fsettings%2Fkeys')
    })

    test('if the service listens beyond loopback, the first account needs the setup token', async () => {
      const origin = 'https://vitrine.example.test'
      await using there = await startOidc([`${origin}/auth/callback/oidc`])
      there.people.set('1', ADA)
      const env = { ...there.env, HOST: '0.0.0.0', VITRINE_PUBLIC_URL: origin }
      await using rooms = await openRooms(source, env)
      const browser = testBrowser(rooms, origin)
      assert.equal(failureIn(await signIn(browser, there, '1')), 'SETUP_TOKEN_NEEDED')
      assert.equal(failureIn(await signIn(browser, there, '1', { setupToken: 'nope' })), 'SETUP_TOKEN_NEEDED')
      const setupToken = await rooms.signIn.setupToken()
      assert.equal(await signIn(browser, there, '1', { setupToken }), '/app/')
      assert.ok([...browser.jar.keys()].every((name) => name.startsWith('__Secure-')))
    })

    test('a provider is not connected to an account if the provider or this service has not verified the address', async () => {
      await using rooms = await openRooms(source, oidc.env)
      await browserOf(rooms).ask('POST sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
      const methods = await methodsOf(rooms)
      for (const [claims, reason] of [
        [ADA, 'ACCOUNT_UNVERIFIED'],
        [{ ...ADA, email_verified: false }, 'EMAIL_UNVERIFIED'],
        [{ email: EMAIL }, 'EMAIL_UNVERIFIED'],
        [{ email: EMAIL, email_verified: 'false' }, 'EMAIL_UNVERIFIED'],
        [{ name: 'Ada' }, 'EMAIL_UNVERIFIED'],
        [{ ...ADA, email: 'ada@example.test\r\nbcc: eve@example.test' }, 'EMAIL_UNVERIFIED'],
      ] as const) {
        oidc.people.set('1', claims)
        const browser = browserOf(rooms)
        assert.equal(failureIn(await signIn(browser, oidc, '1')), reason, JSON.stringify(claims))
        assert.equal(await who(browser), null)
      }
      const yes = storedFlag(dialect, true)
      await rooms.store.write((tx) => tx.updateTable('accounts').set({ emailVerified: yes }).execute())
      oidc.people.set('1', { ...ADA, email_verified: false })
      assert.equal(failureIn(await signIn(browserOf(rooms), oidc, '1')), 'EMAIL_UNVERIFIED')
      assert.deepEqual(await methodsOf(rooms), methods)
      oidc.people.set('1', { ...ADA, email: 'ADA@example.test' })
      const browser = browserOf(rooms)
      assert.equal(await signIn(browser, oidc, '1'), '/app/')
      assert.equal(await who(browser), EMAIL)
      const joined = (await rowsOf(rooms)).find((row) => row.action === 'connectProvider')
      assert.deepEqual(joined?.changes['provider'], { from: null, to: 'Acme' })
    })

    test('an operator may trust a provider that does not say whether an address is verified, but not one that denies it', async () => {
      await using rooms = await openRooms(source, { ...oidc.env, VITRINE_OIDC_TRUST_EMAIL: '1' })
      oidc.people.set('1', { email: EMAIL })
      oidc.people.set('2', { email: 'bob@example.test', email_verified: false })
      assert.equal(await signIn(browserOf(rooms), oidc, '1'), '/app/')
      assert.equal(failureIn(await signIn(browserOf(rooms), oidc, '2')), 'EMAIL_UNVERIFIED')
    })

    test('if mail is on, a person with a verified address replaces an unverified account and everything in it', async () => {
      await using smtp = await startSmtp()
      await using rooms = await openRooms(source, { ...oidc.env, SMTP_URL: smtp.url })
      const stranger = browserOf(rooms)
      await stranger.ask('POST sign-up/email', { name: 'Eve', email: EMAIL, password: PASSWORD })
      const link = tokenIn(await smtp.next(EMAIL))
      oidc.people.set('1', ADA)
      assert.equal(await signIn(browserOf(rooms), oidc, '1'), '/app/')
      const verify = stranger.ask('POST verify-email', { token: link, password: PASSWORD })
      assert.equal(await codeOf(verify), 'UNAUTHENTICATED')
      const byPassword = stranger.ask('POST sign-in/email', { email: EMAIL, password: PASSWORD })
      assert.equal(await codeOf(byPassword), 'UNAUTHENTICATED')
      assert.deepEqual(
        (await methodsOf(rooms)).map(({ providerId }) => providerId),
        ['oidc'],
      )
    })

    test('a sign-in at a provider asks for the code of the second factor', async () => {
      await using rooms = await openRooms(source, oidc.env)
      oidc.people.set('1', ADA)
      const own = browserOf(rooms)
      await own.ask('POST sign-up/email', { name: 'Ada', email: 'other@example.test', password: PASSWORD })
      const { json: begun } = await own.ask('POST two-factor/enable', { password: PASSWORD })
      await own.ask('POST two-factor/verify-totp', { code: totp(begun.totpURI) })
      oidc.next = '1'
      const { json } = await own.ask('POST connect-provider', { provider: 'oidc' })
      assert.equal(await comeBack(own, await oidc.visit(json.url)), '/app/settings/security?connected=oidc')
      const browser = browserOf(rooms)
      const place = await signIn(browser, oidc, '1', { callbackURL: '/app/settings/keys', rememberMe: false })
      assert.equal(place, `/app/two-factor?${new URLSearchParams({ next: '/app/settings/keys' })}`)
      assert.equal(await who(browser), null)
      assert.equal(await codeOf(browser.ask('GET token')), 'UNAUTHENTICATED')
      assert.equal(await codeOf(browser.ask('POST two-factor/verify-totp', { code: '000000' })), 'UNAUTHENTICATED')
      const done = await browser.ask('POST two-factor/verify-totp', { code: totp(begun.totpURI, 1) })
      assert.equal(await who(browser), 'other@example.test')
      const session = done.cookies.find((line) => line.includes('session_token='))
      assert.doesNotMatch(session ?? '', /max-age/i, 'the browser keeps the session although rememberMe was false')
      // In the same browser, the session of another person ends, so that the code is for the new sign-in.
      const shared = browserOf(rooms)
      await shared.ask('POST sign-up/email', { name: 'Bob', email: 'bob@example.test', password: PASSWORD })
      await signIn(shared, oidc, '1')
      assert.equal(await who(shared), null)
    })

    test('a provider is connected only by the session that asked for it, and can be disconnected unless it is the last way to sign in', async () => {
      await using rooms = await openRooms(source, oidc.env)
      oidc.people.set('1', { ...ADA, email: 'at@provider.test', email_verified: false })
      const [ada, bob] = [browserOf(rooms), browserOf(rooms)]
      await ada.ask('POST sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
      await bob.ask('POST sign-up/email', { name: 'Bob', email: 'bob@example.test', password: PASSWORD })
      const start = async (browser: TestBrowser) =>
        (await browser.ask('POST connect-provider', { provider: 'oidc' })).json.url
      oidc.next = '1'

      // A stranger signs in at the provider, and then makes a person who is signed in here open the stranger’s
      // callback.
      const trip = await oidc.visit(await start(bob))
      assert.equal(failureIn(await comeBack(ada, trip)), 'EXPIRED')
      const stolen = await oidc.visit(await start(bob))
      for (const [name, value] of bob.jar) if (name.includes('trip')) ada.jar.set(name, value)
      assert.equal(failureIn(await comeBack(ada, stolen)), 'SESSION_ENDED')
      assert.equal((await methodsOf(rooms)).length, 2)

      assert.equal(await comeBack(ada, await oidc.visit(await start(ada))), '/app/settings/security?connected=oidc')
      const { json: ways } = await ada.ask('GET sign-in-methods')
      const [shown] = ways.providers
      assert.deepEqual(
        [shown.provider, shown.name, shown.label, shown.offered],
        ['oidc', 'Acme', 'at@provider.test', true],
      )
      assert.equal(failureIn(await comeBack(bob, await oidc.visit(await start(bob)))), 'TAKEN')
      oidc.people.set('2', ADA)
      oidc.next = '2'
      assert.equal(failureIn(await comeBack(ada, await oidc.visit(await start(ada)))), 'ANOTHER_CONNECTED')

      const byProvider = browserOf(rooms)
      await signIn(byProvider, oidc, '1')
      assert.equal(await who(byProvider), EMAIL)
      await rooms.store.write((tx) => tx.deleteFrom('sign_in_methods').where('providerId', '=', 'credential').execute())
      const last = await refusal(ada.ask('POST disconnect-provider', { provider: 'oidc' }))
      assert.deepEqual([last['code'], last['reason']], ['CONFLICT', 'LAST_WAY'])
      const at = storedTime(dialect, Date.now())
      const [{ userId } = { userId: undefined }] = await methodsOf(rooms)
      assert.ok(userId)
      await rooms.store.write((tx) =>
        tx
          .insertInto('sign_in_methods')
          .values({
            ...{ id: 'x', userId, accountId: userId, providerId: 'credential', password: 'a hash' },
            ...{ accessToken: null, refreshToken: null, idToken: null, scope: null },
            ...{ accessTokenExpiresAt: null, refreshTokenExpiresAt: null, createdAt: at, updatedAt: at },
          })
          .execute(),
      )
      await ada.ask('POST disconnect-provider', { provider: 'oidc' })
      assert.equal(await codeOf(ada.ask('POST disconnect-provider', { provider: 'oidc' })), 'NOT_FOUND')
      assert.equal(await codeOf(ada.ask('POST connect-provider', { provider: 'google' })), 'NOT_FOUND')
      rooms.clock.at += 660_000
      assert.equal(await codeOf(start(ada)), 'REAUTHENTICATION_REQUIRED')
    })

    test('the owner gets a mail about a new provider, and a new password disconnects the providers that are not kept', async () => {
      await using smtp = await startSmtp()
      await using rooms = await openRooms(source, { ...oidc.env, SMTP_URL: smtp.url })
      oidc.people.set('1', ADA)
      const own = browserOf(rooms)
      await own.ask('POST sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
      await own.ask('POST verify-email', { token: tokenIn(await smtp.next(EMAIL)), password: PASSWORD })
      await signIn(browserOf(rooms), oidc, '1')
      assert.match((await smtp.next(EMAIL)).text, /was connected to yours[^]*“Acme”/)
      const reset = async (keep: object) => {
        await own.ask('POST request-password-reset', { email: EMAIL })
        const token = tokenIn(await smtp.next(EMAIL, /reset-password/))
        const { json: held } = await own.ask('POST reset-password/preview', { token })
        assert.deepEqual([held.providers[0].provider, held.providers[0].label], ['oidc', EMAIL])
        return (await own.ask('POST reset-password', { token, newPassword: 'another long password', keep })).json
      }
      assert.equal((await reset({ providers: ['oidc'] })).kept.providers.length, 1)
      assert.equal(await signIn(browserOf(rooms), oidc, '1'), '/app/')
      const { ended } = await reset({})
      assert.deepEqual(ended.providers, [{ provider: 'oidc', name: 'Acme', label: EMAIL }])
      assert.deepEqual(
        (await methodsOf(rooms)).map(({ providerId }) => providerId),
        ['credential'],
      )
    })

    test('a deleted account does not come back, and concurrent first sign-ins create one account', async () => {
      await using rooms = await openRooms(source, oidc.env)
      oidc.people.set('1', ADA)
      oidc.next = '1'
      const browsers = Array.from({ length: 4 }, () => browserOf(rooms))
      const backs = await Promise.all(browsers.map(async (browser) => oidc.visit(await leave(browser))))
      const places = await Promise.all(browsers.map((browser, n) => comeBack(browser, backs[n] ?? new URL(ORIGIN))))
      assert.deepEqual(new Set(places), new Set(['/app/']))
      const accounts = () => rooms.store.db.selectFrom('accounts').selectAll().execute()
      const [account, ...none] = await accounts()
      assert.deepEqual(none, [])
      await rooms.store.write((tx) => tx.deleteFrom('accounts').execute())
      assert.deepEqual(await methodsOf(rooms), [])
      assert.equal(await signIn(browserOf(rooms), oidc, '1'), '/app/')
      assert.notEqual((await accounts())[0]?.id, account?.id)
    })
  })
}

describe('a callback of a provider', () => {
  let source: StoreSource
  let oidc: TestOidc
  before(async () => {
    source = await storeSource('sqlite')
    oidc = await startOidc()
    oidc.people.set('1', ADA)
  })
  after(async () => {
    await oidc[Symbol.asyncDispose]()
    await source[Symbol.asyncDispose]()
  })

  test('a callback works once, in the browser that began the sign-in, within ten minutes', async () => {
    await using rooms = await openRooms(source, oidc.env)
    oidc.next = '1'
    const browser = browserOf(rooms)
    const back = await oidc.visit(await leave(browser))
    const held = new Map(browser.jar)
    assert.equal(failureIn(await comeBack(browserOf(rooms), back)), 'EXPIRED', 'another browser')
    for (const state of ['', 'x', `${back.searchParams.get('state')}x`]) {
      const forged = new URL(back)
      forged.searchParams.set('state', state)
      assert.equal(failureIn(await comeBack(browser, forged)), 'EXPIRED', 'a forged state')
    }
    assert.equal(await comeBack(browser, back), '/app/')
    assert.equal(failureIn(await comeBack(browser, back)), 'EXPIRED', 'again')
    const thief = browserOf(rooms)
    for (const [name, value] of held) thief.jar.set(name, value)
    assert.equal(failureIn(await comeBack(thief, back)), 'FAILED', 'the code again')
    assert.equal(await who(thief), null)
    const forged = browserOf(rooms)
    for (const name of held.keys()) forged.jar.set(name, `${held.get(name)}x`)
    assert.equal(failureIn(await comeBack(forged, back)), 'EXPIRED', 'a forged cookie')

    const late = browserOf(rooms)
    const slow = await oidc.visit(await leave(late))
    rooms.clock.at += 601_000
    assert.equal(failureIn(await comeBack(late, slow)), 'EXPIRED')
  })

  test('a callback leads only to our own pages, with a reason from a fixed list', async () => {
    await using rooms = await openRooms(source, oidc.env)
    const browser = browserOf(rooms)
    for (const callbackURL of ['https://evil.example/', '//evil.example', '/\\evil.example', 'javascript:alert(1)']) {
      assert.equal(await codeOf(leave(browser, { callbackURL })), 'INVALID_REQUEST', callbackURL)
    }
    oidc.next = null
    const cancelled = await comeBack(
      browser,
      await oidc.visit(await leave(browser, { callbackURL: '/app/settings/keys' })),
    )
    assert.equal(cancelled, '/app/sign-in?failed=CANCELLED&provider=oidc&next=%2Fapp%2Fsettings%2Fkeys')
    const url = await leave(browser)
    const back = new URL(`${ORIGIN}/auth/callback/oidc`)
    const state = new URL(url).searchParams.get('state') ?? ''
    const said = { state, error: '<script>', error_description: 'Call 0800 12345', error_uri: 'https://evil.example' }
    for (const [name, value] of Object.entries(said)) back.searchParams.set(name, value)
    assert.equal(await comeBack(browser, back), '/app/sign-in?failed=FAILED&provider=oidc')
    assert.equal(await codeOf(leave(browser, {}, 'github')), 'NOT_FOUND')
    const foreign = browser.ask('POST sign-in/provider', { provider: 'oidc' }, 'https://evil.example')
    assert.equal(await codeOf(foreign), 'SIGN_IN_REFUSED')
  })

  test('a callback leads back to the loopback name that the browser uses', async () => {
    await using rooms = await openRooms(source, oidc.env)
    const ask = async (url: string) => {
      const body = JSON.stringify({ provider: 'oidc' })
      const headers = { 'content-type': 'application/json', 'x-vitrine-client': '127.0.0.1' }
      const request = new Request(`${url}/auth/sign-in/provider`, { method: 'POST', headers, body })
      const { url: away } = Address.parse(await (await rooms.signIn.handle(request)).json())
      return new URL(away).searchParams.get('redirect_uri')
    }
    assert.equal(await ask('http://localhost:3000'), 'http://localhost:3000/auth/callback/oidc')
    assert.equal(await ask('http://127.0.0.1:3000'), 'http://127.0.0.1:3000/auth/callback/oidc')
    // The sender chooses the Host header.
    assert.equal(await ask('http://evil.example:3000'), 'http://127.0.0.1:3000/auth/callback/oidc')
  })

  test('callbacks are limited by the client’s network address, and the redirect gives this reason', async () => {
    await using rooms = await openRooms(source, oidc.env)
    const places = new Set<string>()
    for (let n = 0; n < 130; n++) {
      places.add((await auth(rooms, 'GET callback/oidc?state=x&code=y')).location ?? '')
    }
    assert.deepEqual([...places].map(failureIn), ['EXPIRED', 'RATE_LIMITED'])
  })
})

describe('a provider that lies', () => {
  let source: StoreSource
  before(async () => {
    source = await storeSource('sqlite')
  })
  after(() => source[Symbol.asyncDispose]())

  const attempt = async (rooms: Rooms, rogue: Rogue, parameters?: Readonly<Record<string, string>>) =>
    await comeBack(...(await tripTo(rooms, rogue, parameters)))
  const tripTo = async (
    rooms: Rooms,
    rogue: Rogue,
    parameters?: Readonly<Record<string, string>>,
  ): Promise<[TestBrowser, URL]> => {
    const browser = browserOf(rooms)
    return [browser, rogue.back(await leave(browser), parameters)]
  }

  test('a provider that sends a token for another audience, issuer, time, sign-in or key signs nobody in', async () => {
    await using rogue = await startRogue()
    await using rooms = await openRooms(source, rogueEnv(rogue))
    const good = { email: EMAIL, email_verified: true }
    rogue.claims = good
    assert.equal(await attempt(rooms, rogue), '/app/')
    const now = Math.floor(Date.now() / 1000)
    for (const claims of [
      { aud: 'another client' },
      { aud: [CLIENT.id, 'another client'] },
      { aud: [CLIENT.id, 'another client'], azp: 'another client' },
      { azp: 'another client' },
      { iss: 'https://evil.example' },
      { exp: now - 3_600 },
      { nonce: 'of another sign-in' },
      { nonce: undefined },
      { sub: '' },
      { sub: undefined },
    ]) {
      rogue.claims = { ...good, ...claims }
      assert.equal(failureIn(await attempt(rooms, rogue)), 'FAILED', JSON.stringify(claims))
    }
    rogue.claims = { ...good, aud: [CLIENT.id, 'another'], azp: CLIENT.id }
    assert.equal(await attempt(rooms, rogue), '/app/')

    rogue.claims = good
    const strange = await newKey('first')
    const secret = new TextEncoder().encode(CLIENT.secret)
    const none = (claims: object) =>
      [{ alg: 'none' }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.') + '.'
    for (const signer of [
      (claims: Readonly<Record<string, unknown>>) => signed(claims, strange),
      (claims: Readonly<Record<string, unknown>>) =>
        new SignJWT({ ...claims }).setProtectedHeader({ alg: 'HS256' }).sign(secret),
      (claims: object) => Promise.resolve(none(claims)),
      () => Promise.resolve('not a token'),
    ]) {
      rogue.signer = signer
      assert.equal(failureIn(await attempt(rooms, rogue)), 'FAILED')
    }
    const logged = JSON.stringify(rooms.logged)
    for (const reason of [
      'ERR_JWT_CLAIM_VALIDATION_FAILED aud',
      'the token is of another sign-in',
      'ERR_JWT_EXPIRED exp',
    ]) {
      assert.ok(logged.includes(`"reason":"${reason}"`), reason)
    }
    for (const text of ['a code', 'an access token', CLIENT.secret, 'eyJ']) assert.ok(!logged.includes(text), text)
  })

  test('the answer of one provider is not accepted as the answer of another', async () => {
    await using rogue = await startRogue()
    await using rooms = await openRooms(source, rogueEnv(rogue))
    rogue.claims = { email: EMAIL, email_verified: true }
    const mixed = await attempt(rooms, rogue, { code: 'x', iss: 'https://evil.example' })
    assert.equal(failureIn(mixed), 'FAILED')
    assert.equal(await attempt(rooms, rogue, { code: 'x', iss: rogue.url }), '/app/')
    rogue.discovery = { authorization_response_iss_parameter_supported: true }
    rooms.clock.at += 3_600_001
    assert.equal(failureIn(await attempt(rooms, rogue, { code: 'x' })), 'FAILED', 'without the issuer')
    const [browser, back] = await tripTo(rooms, rogue)
    back.pathname = '/auth/callback/google'
    assert.equal(failureIn(await comeBack(browser, back)), 'EXPIRED')
    await using other = await startRogue()
    other.claims = { sub: 'somebody', email: 'eve@example.test', email_verified: true }
    const at = { dataDir: rooms.config.dataDir, databaseUrl: null }
    await rooms[Symbol.asyncDispose]()
    const same = { config: () => Promise.resolve(at), [Symbol.asyncDispose]: () => Promise.resolve() }
    await using moved = await openRooms(same, rogueEnv(other))
    const [late, backThere] = await tripTo(moved, other)
    assert.equal(await comeBack(late, backThere), '/app/')
    assert.equal(await who(late), 'eve@example.test')
  })

  test('a provider that was switched off signs nobody in, and does not count as a way to sign in', async () => {
    await using rogue = await startRogue()
    rogue.claims = { email: EMAIL, email_verified: true }
    const at = await source.config()
    const same = { config: () => Promise.resolve(at), [Symbol.asyncDispose]: () => Promise.resolve() }
    {
      await using rooms = await openRooms(same, rogueEnv(rogue))
      await attempt(rooms, rogue)
    }
    await using rooms = await openRooms(same)
    const [account] = await rooms.store.db.selectFrom('accounts').selectAll().execute()
    assert.ok(account)
    const ways = await waysOf(rooms.store.db, account.id, { all: [] })
    assert.deepEqual([ways.providers[0]?.name, ways.providers[0]?.offered], ['single sign-on', false])
    assert.equal(await codeOf(leave(browserOf(rooms))), 'NOT_FOUND')
    assert.equal(failureIn((await auth(rooms, 'GET callback/oidc?state=x&code=y')).location ?? ''), 'EXPIRED')
    assert.equal(await codeOf(requireAnotherWay(rooms.store.db, account.id, { all: [] })), 'CONFLICT')
  })

  test('a provider cannot send us to another issuer, to addresses without TLS, or to private addresses', async () => {
    await using rogue = await startRogue()
    for (const discovery of [
      { issuer: 'https://evil.example' },
      { authorization_endpoint: 'javascript:alert(1)' },
      { authorization_endpoint: 'http://evil.example/authorize' },
      { authorization_endpoint: undefined },
    ]) {
      rogue.discovery = discovery
      await using rooms = await openRooms(source, rogueEnv(rogue))
      const refused = await refusal(leave(browserOf(rooms)))
      assert.equal(refused['reason'], 'UNAVAILABLE', JSON.stringify(discovery))
    }
    await using inside = await startRogue()
    const env = { ...rogueEnv(rogue), VITRINE_ALLOW_PRIVATE_HOSTS: '0' }
    for (const discovery of [
      { token_endpoint: 'http://169.254.169.254/token' },
      { token_endpoint: 'https://169.254.169.254/token' },
      { token_endpoint: 'https://10.0.0.1/token' },
      { token_endpoint: `${inside.url}/token` },
      { jwks_uri: `${inside.url}/jwks` },
      { jwks_uri: `https://localhost:${inside.port}/jwks` },
      { userinfo_endpoint: `${inside.url}/me` },
    ]) {
      rogue.discovery = discovery
      await using rooms = await openRooms(source, env)
      assert.equal(failureIn(await attempt(rooms, rogue)), 'FAILED', JSON.stringify(discovery))
    }
    assert.deepEqual(inside.asked, [])
  })

  test('user info of a provider is refused if it is about another person than the token', async () => {
    await using rogue = await startRogue()
    rogue.discovery = { userinfo_endpoint: `${rogue.url}/me` }
    await using rooms = await openRooms(source, rogueEnv(rogue))
    rogue.answers.set('/me', { sub: 'somebody else', email: EMAIL, email_verified: true })
    assert.equal(failureIn(await attempt(rooms, rogue)), 'FAILED')
    rogue.answers.set('/me', { sub: 'somebody', email: EMAIL, email_verified: 'true', name: 'A\u0000d\u202ea\n' })
    assert.equal(await attempt(rooms, rogue), '/app/')
    const [account] = await rooms.store.db.selectFrom('accounts').selectAll().execute()
    assert.equal(account?.name, 'A d a')
  })

  test('a provider may change its keys, be down for a while, and require the client secret in the form', async () => {
    await using rogue = await startRogue()
    rogue.claims = { email: EMAIL, email_verified: true }
    rogue.discovery = { token_endpoint_auth_methods_supported: ['client_secret_post'] }
    await using rooms = await openRooms(source, rogueEnv(rogue))
    rogue.answers.set('/.well-known/openid-configuration', { nothing: 'here' })
    assert.equal((await refusal(leave(browserOf(rooms))))['reason'], 'UNAVAILABLE')
    rogue.answers.clear()
    assert.equal((await refusal(leave(browserOf(rooms))))['reason'], 'UNAVAILABLE', 'requested again at once')
    rooms.clock.at += 5_001
    assert.equal(await attempt(rooms, rogue), '/app/')
    const form = rogue.asked.find((line) => line.startsWith('POST /token'))
    assert.equal(new URLSearchParams(form?.replace('POST /token ', '')).get('client_secret'), CLIENT.secret)
    await rogue.rotate()
    assert.equal(failureIn(await attempt(rooms, rogue)), 'FAILED', 'requested the keys again at once')
    rooms.clock.at += 30_001
    assert.equal(await attempt(rooms, rogue), '/app/')
  })

  test('GitHub signs in with the primary address, if GitHub has verified it', async () => {
    await using hub = await startRogue()
    const env = { VITRINE_GITHUB_URL: hub.url, VITRINE_GITHUB_CLIENT_ID: 'id', VITRINE_GITHUB_CLIENT_SECRET: 'secret' }
    await using rooms = await openRooms(source, env)
    const primary = { email: 'ada@example.test', primary: true, verified: true }
    hub.answers.set('/login/oauth/access_token', { access_token: 'an access token', token_type: 'bearer' })
    hub.answers.set('/api/v3/user', { id: 7, login: 'ada', name: null })
    const come = async () => {
      const browser = browserOf(rooms)
      const url = await leave(browser, {}, 'github')
      assert.equal(new URL(url).searchParams.get('code_challenge_method'), 'S256')
      return await comeBack(browser, hub.back(url))
    }
    const second = { email: 'eve@example.test', primary: false, verified: true }
    for (const emails of [[], [second], [{ ...primary, verified: false }, second]]) {
      hub.answers.set('/api/v3/user/emails', emails)
      assert.equal(failureIn(await come()), 'EMAIL_UNVERIFIED')
    }
    hub.answers.set('/api/v3/user/emails', [second, primary])
    assert.equal(await come(), '/app/')
    assert.deepEqual((await rooms.store.db.selectFrom('accounts').selectAll().execute())[0]?.name, 'ada')
    hub.answers.set('/login/oauth/access_token', { error: 'bad_verification_code' })
    assert.equal(failureIn(await come()), 'FAILED')
  })

  test('Google is called with its own host name and must have its own certificate', async () => {
    await using certificates = await makeCertificates()
    const { pem } = certificates
    const as = 'https://accounts.google.com'
    await using google = await startRogue({ as, tls: { key: pem['server.key'] ?? '', cert: pem['server.crt'] ?? '' } })
    google.claims = { email: EMAIL, email_verified: true, name: 'Ada' }
    const env = { VITRINE_GOOGLE_CLIENT_ID: CLIENT.id, VITRINE_GOOGLE_CLIENT_SECRET: CLIENT.secret }
    const hosts: string[] = []
    const transport = (ca: string) => ({
      ca,
      dial: (at: { readonly host: string; readonly port: number }, signal: AbortSignal) => {
        hosts.push(`${at.host}:${at.port}`)
        return dial({ host: '127.0.0.1', port: google.port }, true, signal)
      },
    })
    await using rooms = await openRooms(source, env, { transport: transport(pem['ca.crt'] ?? '') })
    const browser = browserOf(rooms)
    const url = await leave(browser, {}, 'google')
    assert.equal(await comeBack(browser, google.back(url)), '/app/')
    assert.deepEqual(new Set(hosts), new Set(['accounts.google.com:443']))
    await using others = await openRooms(source, env, { transport: transport(pem['other.crt'] ?? '') })
    assert.equal((await refusal(leave(browserOf(others), {}, 'google')))['reason'], 'UNAVAILABLE')
  })
})
