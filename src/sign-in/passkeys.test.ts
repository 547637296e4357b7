// The authenticator in this file is software.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { createPasskey, signWith, type SoftPasskey } from '../../test/support/authenticator.ts'
import { browserOf as testBrowser, type TestBrowser } from '../../test/support/browser.ts'
import { startSmtp, tokenIn } from '../../test/support/mail.ts'
import { codeOf, openRooms, PASSWORD, refusal, sessionOf, type Rooms } from '../../test/support/people.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { totp } from '../../test/support/totp.ts'
import { readDetail } from '../audit/row-detail.ts'
import { asId, type TeamId } from '../ids.ts'
import { requireMembership } from '../teams/require-membership.ts'
import { createTeam } from '../teams/teams.ts'
import { passkeyPlace } from './passkey-host.ts'

const ORIGIN = 'https://vitrine.example.test'
const ENV = { VITRINE_PUBLIC_URL: ORIGIN, VITRINE_SIGNUP: 'open' }
const EMAIL = 'ada@example.test'

const browserOf = (rooms: Rooms) => testBrowser(rooms, ORIGIN)
type Browser = TestBrowser

async function signedUp(rooms: Rooms, email = EMAIL): Promise<Browser> {
  const browser = browserOf(rooms)
  await browser.ask('POST sign-up/email', { name: 'Ada', email, password: PASSWORD })
  return browser
}

async function addPasskey(browser: Browser, name = 'Laptop'): Promise<SoftPasskey> {
  const { json: options } = await browser.ask('POST passkey/add-options', {})
  const { passkey, credential } = createPasskey(ORIGIN, options)
  const { json } = await browser.ask('POST passkey/add', { name, response: credential })
  assert.equal(json.name, name)
  return passkey
}

const challengeFor = async (browser: Browser): Promise<string> =>
  (await browser.ask('POST passkey/sign-in-options', {})).json.challenge

async function signIn(browser: Browser, passkey: SoftPasskey, wrong: Parameters<typeof signWith>[3] = {}) {
  const response = signWith(passkey, ORIGIN, await challengeFor(browser), wrong)
  return await browser.ask('POST passkey/sign-in', { response })
}

const rowsOf = async ({ store, audit }: Rooms) => {
  await audit.flush()
  const rows = await store.db.selectFrom('audit').selectAll().orderBy('id').execute()
  return rows.map((row) => ({ ...row, changes: readDetail(row.detail).changes ?? {} }))
}

for (const dialect of DIALECTS) {
  describe(`passkeys on ${dialect}`, () => {
    let source: StoreSource
    before(async () => {
      source = await storeSource(dialect)
    })
    after(() => source[Symbol.asyncDispose]())

    test('a passkey signs in without a password or code, and can be listed, renamed and removed', async () => {
      await using rooms = await openRooms(source, ENV)
      const own = await signedUp(rooms)
      const { json: begun } = await own.ask('POST two-factor/enable', { password: PASSWORD })
      await own.ask('POST two-factor/verify-totp', { code: totp(begun.totpURI) })
      const passkey = await addPasskey(own)
      const other = browserOf(rooms)
      assert.deepEqual((await other.ask('GET options')).json.methods, ['password', 'passkey'])
      const signedIn = await signIn(other, passkey)
      assert.equal(signedIn.json.user.email, EMAIL)
      assert.ok((await other.ask('GET token')).json.token)
      const { json: ways } = await other.ask('GET sign-in-methods')
      const [shown] = ways.passkeys
      assert.deepEqual([ways.password, shown.name, shown.synced], [true, 'Laptop', false])
      assert.ok(shown.lastUsedAt)
      await other.ask('POST passkey/rename', { id: shown.id, name: ' Old laptop ' })
      await other.ask('POST passkey/remove', { id: shown.id })
      assert.equal((await refusal(signIn(browserOf(rooms), passkey)))['reason'], 'PASSKEY_NOT_FOUND')
      const rows = (await rowsOf(rooms)).filter((row) => /passkey|^signIn/i.test(row.action))
      assert.deepEqual(
        rows.map(({ action, outcome, changes }) => [action, outcome, changes]),
        [
          ['addPasskey', 'ANSWERED', { passkey: { from: null, to: 'Laptop' } }],
          ['signIn', 'ANSWERED', { method: { from: null, to: 'passkey' } }],
          ['renamePasskey', 'ANSWERED', { passkey: { from: 'Laptop', to: 'Old laptop' } }],
          ['removePasskey', 'ANSWERED', { passkey: { from: 'Old laptop', to: null } }],
        ],
      )
    })

    test('a passkey is added only to the account that asked for it', async () => {
      await using rooms = await openRooms(source, ENV)
      const [ada, bob] = [await signedUp(rooms), await signedUp(rooms, 'bob@example.test')]
      const { json: options } = await ada.ask('POST passkey/add-options', {})
      const { credential } = createPasskey(ORIGIN, options)
      // Bob signs in to Ada's browser, which still has the cookie with her challenge.
      for (const [name, value] of bob.jar) if (name.includes('session_token')) ada.jar.set(name, value)
      assert.equal(
        await codeOf(ada.ask('POST passkey/add', { name: 'Laptop', response: credential })),
        'INVALID_REQUEST',
      )
      assert.deepEqual((await ada.ask('GET sign-in-methods')).json.passkeys, [])
    })

    test('a passkey answer from another page, with a wrong challenge or key, or for another account is refused', async () => {
      await using rooms = await openRooms(source, ENV)
      const passkey = await addPasskey(await signedUp(rooms))
      const strange = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
      const bob = await addPasskey(await signedUp(rooms, 'bob@example.test'))
      const wrong: Readonly<Record<string, Parameters<typeof signWith>[3]>> = {
        'a page of another site': { origin: 'https://evil.example' },
        'a page of a subdomain': { origin: 'https://evil.vitrine.example.test' },
        'another relying party': { rpId: 'evil.example' },
        'without verification of the person': { unverified: true },
        'another key': { key: strange },
        'the challenge of another sign-in': { challenge: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' },
        'the account of another person': { userHandle: bob.userHandle },
      }
      for (const [what, how] of Object.entries(wrong)) {
        const browser = browserOf(rooms)
        const refused = await refusal(signIn(browser, passkey, how))
        assert.deepEqual([refused['code'], refused['reason']], ['UNAUTHENTICATED', 'PASSKEY_NOT_VERIFIED'], what)
        assert.equal(
          [...browser.jar.keys()].some((name) => name.includes('session_token')),
          false,
          what,
        )
      }
      await signIn(browserOf(rooms), passkey, { counter: 5 })
      assert.equal(await codeOf(signIn(browserOf(rooms), passkey, { counter: 5 })), 'UNAUTHENTICATED', 'a copy')
      const refused = (await rowsOf(rooms)).filter((row) => row.action === 'signIn' && row.outcome === 'DENIED')
      assert.equal(
        refused.reduce((sum, row) => sum + row.times, 0),
        8,
      )
    })

    test('a passkey answer works only once, in the browser that asked, for its purpose, and within five minutes', async () => {
      await using rooms = await openRooms(source, ENV)
      const own = await signedUp(rooms)
      const passkey = await addPasskey(own)
      const browser = browserOf(rooms)
      const response = signWith(passkey, ORIGIN, await challengeFor(browser))
      const held = new Map(browser.jar)
      assert.equal(await codeOf(browserOf(rooms).ask('POST passkey/sign-in', { response })), 'INVALID_REQUEST')
      await browser.ask('POST passkey/sign-in', { response })
      assert.equal(await codeOf(browser.ask('POST passkey/sign-in', { response })), 'INVALID_REQUEST')
      const thief = browserOf(rooms)
      for (const [name, value] of held) thief.jar.set(name, value)
      assert.equal(await codeOf(thief.ask('POST passkey/sign-in', { response })), 'UNAUTHENTICATED')
      assert.equal((await thief.ask('GET get-session')).json, null)

      const { json: options } = await own.ask('POST passkey/add-options', {})
      const misused = signWith(passkey, ORIGIN, options.challenge)
      assert.equal(await codeOf(own.ask('POST passkey/sign-in', { response: misused })), 'INVALID_REQUEST')

      const late = browserOf(rooms)
      const slow = signWith(passkey, ORIGIN, await challengeFor(late))
      rooms.clock.at += 301_000
      assert.equal(await codeOf(late.ask('POST passkey/sign-in', { response: slow })), 'INVALID_REQUEST')
    })

    test('of many requests with the same passkey answer, only one signs in', async () => {
      await using rooms = await openRooms(source, ENV)
      const passkey = await addPasskey(await signedUp(rooms))
      const browser = browserOf(rooms)
      const response = signWith(passkey, ORIGIN, await challengeFor(browser), { counter: 0 })
      const before = await rooms.store.db.selectFrom('sessions').selectAll().execute()
      const all = Array.from({ length: 8 }, () => browser.ask('POST passkey/sign-in', { response }))
      const done = await Promise.allSettled(all)
      assert.equal(done.filter(({ status }) => status === 'fulfilled').length, 1)
      const sessions = await rooms.store.db.selectFrom('sessions').selectAll().execute()
      assert.equal(sessions.length, before.length + 1)
    })

    test('a passkey can be created only on our own page, by a person who signed in recently', async () => {
      await using rooms = await openRooms(source, ENV)
      const own = await signedUp(rooms)
      assert.equal(await codeOf(browserOf(rooms).ask('POST passkey/add-options', {})), 'UNAUTHENTICATED')
      assert.equal(await codeOf(own.ask('POST passkey/add-options', {}, 'https://evil.example')), 'SIGN_IN_REFUSED')
      const wrong: readonly Parameters<typeof createPasskey>[2][] = [
        { origin: 'https://evil.example' },
        { rpId: 'evil.example' },
        { unverified: true },
        { challenge: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' },
      ]
      for (const how of wrong) {
        const { json } = await own.ask('POST passkey/add-options', {})
        const { credential } = createPasskey(ORIGIN, json, how)
        assert.equal(await codeOf(own.ask('POST passkey/add', { name: 'x', response: credential })), 'INVALID_REQUEST')
      }
      const { json } = await own.ask('POST passkey/add-options', {})
      const { credential } = createPasskey(ORIGIN, json)
      await own.ask('POST passkey/add', { name: 'x', response: credential })
      const { json: next } = await own.ask('POST passkey/add-options', {})
      assert.deepEqual(next.excludeCredentials, [{ id: credential.id, type: 'public-key', transports: ['internal'] }])
      rooms.clock.at += 660_000
      const late = own.ask('POST passkey/add-options', {})
      assert.equal(await codeOf(late), 'REAUTHENTICATION_REQUIRED')
    })

    test('a passkey of somebody else can be neither renamed nor removed, and the last way to sign in stays', async () => {
      await using rooms = await openRooms(source, ENV)
      const own = await signedUp(rooms)
      await addPasskey(own)
      const [{ id }] = (await own.ask('GET sign-in-methods')).json.passkeys
      const bob = await signedUp(rooms, 'bob@example.test')
      assert.equal(await codeOf(bob.ask('POST passkey/rename', { id, name: 'mine' })), 'NOT_FOUND')
      assert.equal(await codeOf(bob.ask('POST passkey/remove', { id })), 'NOT_FOUND')
      // Without this row, the account has no password.
      await rooms.store.write((tx) => tx.deleteFrom('sign_in_methods').execute())
      const last = await refusal(own.ask('POST passkey/remove', { id }))
      assert.deepEqual([last['code'], last['reason']], ['CONFLICT', 'LAST_WAY'])
      await addPasskey(own, 'Phone')
      await own.ask('POST passkey/remove', { id })
    })

    test('the owner gets a mail for each new passkey, and a new password removes the passkeys that are not kept', async () => {
      await using smtp = await startSmtp()
      await using rooms = await openRooms(source, { ...ENV, SMTP_URL: smtp.url })
      const own = await signedUp(rooms)
      const verification = tokenIn(await smtp.next(EMAIL))
      await own.ask('POST verify-email', { token: verification, password: PASSWORD })
      await own.ask('POST sign-in/email', { email: EMAIL, password: PASSWORD })
      const thief = await addPasskey(own, 'Not mine')
      rooms.clock.at++
      const kept = await addPasskey(own, 'Phone')
      assert.match((await smtp.next(EMAIL)).text, /A passkey was added[^]*“Not mine”/)
      await smtp.next(EMAIL, /“Phone”/)
      await own.ask('POST request-password-reset', { email: EMAIL })
      const token = tokenIn(await smtp.next(EMAIL, /reset-password/))
      const { json: held } = await own.ask('POST reset-password/preview', { token })
      assert.deepEqual(
        held.passkeys.map(({ name }: { name: string }) => name),
        ['Not mine', 'Phone'],
      )
      const foreign = { token, newPassword: 'another long password', keep: { passkeyIds: ['nope'] } }
      assert.equal(await codeOf(own.ask('POST reset-password', foreign)), 'INVALID_REQUEST')
      const order = { ...foreign, keep: { passkeyIds: [held.passkeys[1].id] } }
      const { json } = await own.ask('POST reset-password', order)
      assert.deepEqual([json.ended.passkeys[0].name, json.kept.passkeys[0].name], ['Not mine', 'Phone'])
      assert.equal(await codeOf(signIn(browserOf(rooms), thief)), 'UNAUTHENTICATED')
      await signIn(browserOf(rooms), kept)
      const reset = (await rowsOf(rooms)).find((row) => row.action === 'resetPassword')
      assert.deepEqual(reset?.changes['passkeys'], { added: [], removed: ['Not mine'] })
    })

    test('if mail is on, an account with an unverified address cannot sign in with a passkey', async () => {
      await using smtp = await startSmtp()
      const at = await source.config()
      const same = { config: () => Promise.resolve(at), [Symbol.asyncDispose]: () => Promise.resolve() }
      let passkey: SoftPasskey
      {
        await using rooms = await openRooms(same, ENV)
        passkey = await addPasskey(await signedUp(rooms))
      }
      await using rooms = await openRooms(same, { ...ENV, SMTP_URL: smtp.url })
      assert.equal((await refusal(signIn(browserOf(rooms), passkey)))['reason'], 'EMAIL_NOT_VERIFIED')
    })

    test('a team that requires a second factor does not accept a passkey instead, because the password still signs in', async () => {
      await using rooms = await openRooms(source, ENV)
      await addPasskey(await signedUp(rooms))
      const { id } = await rooms.store.db.selectFrom('accounts').select('id').executeTakeFirstOrThrow()
      const call = await sessionOf(rooms, id)
      const team = await createTeam(rooms, call, { name: 'Team' })
      const settings = JSON.stringify({ requireSecondFactor: true })
      await rooms.store.write((tx) => tx.updateTable('teams').set({ settings }).execute())
      const reached = requireMembership(rooms, call, asId<TeamId>(team.id))
      assert.equal(await codeOf(reached), 'SECOND_FACTOR_REQUIRED')
    })

    test('an account has at most twenty passkeys, which are deleted with the account', async () => {
      await using rooms = await openRooms(source, ENV)
      const own = await signedUp(rooms)
      for (let n = 0; n < 20; n++) await addPasskey(own, `Key ${n}`)
      assert.equal(await codeOf(own.ask('POST passkey/add-options', {})), 'CONFLICT')
      await rooms.store.write((tx) => tx.deleteFrom('accounts').execute())
      assert.deepEqual(await rooms.store.db.selectFrom('passkeys').selectAll().execute(), [])
    })
  })
}

test('passkeys work under a host name, over HTTPS or on this machine', () => {
  const place = (publicUrl: string | null, url: string, loopback = true) =>
    passkeyPlace({ publicUrl, loopback }, { url })?.rpId ?? null
  assert.equal(place(ORIGIN, 'http://10.0.0.1:3000/'), 'vitrine.example.test')
  assert.equal(place('http://vitrine.example.test', 'http://vitrine.example.test/'), null)
  assert.equal(place('https://192.0.2.1', 'https://192.0.2.1/'), null)
  assert.equal(place('https://[2001:db8::1]', 'https://[2001:db8::1]/'), null)
  assert.equal(place(null, 'http://localhost:3000/'), 'localhost')
  assert.equal(place(null, 'http://127.0.0.1:3000/'), null)
  assert.equal(place(null, 'http://localhost:3000/', false), null)
  assert.equal(place(null, 'http://evil.example:3000/'), null)
})
