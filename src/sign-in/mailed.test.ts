import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { LINK, startSmtp, tokenIn, type TestSmtp } from '../../test/support/mail.ts'
import {
  auth,
  callOf,
  codeOf,
  openRooms,
  PASSWORD,
  refusal,
  sessionOf,
  someone,
  type Rooms,
} from '../../test/support/people.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { DEMO_EMAIL } from '../config.ts'
import { deleteAccount } from '../auth/own-account.ts'
import { createKey } from '../auth/api-keys.ts'
import { createTeam, listTeams } from '../teams/teams.ts'
import type { AccountId } from '../ids.ts'
import { newId } from '../ids.ts'
import { authenticator } from '../auth/authenticate.ts'
import { storedTime } from '../store/better-auth-times.ts'
import type { Library } from './sign-in-library.ts'
import { verifyEmail } from './verify-email.ts'

const signUp = (rooms: Rooms, email: string, more: object = {}) =>
  auth(rooms, 'POST sign-up/email', { name: 'Ada', email, password: PASSWORD, ...more })
const signIn = (rooms: Rooms, email: string, password = PASSWORD) =>
  auth(rooms, 'POST sign-in/email', { email, password })
const verify = (rooms: Rooms, token: string, more: object = {}) =>
  auth(rooms, 'POST verify-email', { token, password: PASSWORD, ...more })
const reset = (rooms: Rooms, token: string, more: object = {}) =>
  auth(rooms, 'POST reset-password', { token, newPassword: OTHER, ...more })
const OTHER = 'another long password'

for (const dialect of DIALECTS) {
  describe(`sign-in by mail, on ${dialect}`, () => {
    let source: StoreSource
    let smtp: TestSmtp
    let env: Record<string, string>
    before(async () => {
      source = await storeSource(dialect)
      smtp = await startSmtp()
      env = { SMTP_URL: smtp.url, VITRINE_PUBLIC_URL: 'https://vitrine.example.com' }
    })
    after(async () => {
      await smtp[Symbol.asyncDispose]()
      await source[Symbol.asyncDispose]()
    })
    const verified = async (rooms: Rooms, email: string) => {
      const made = await signUp(rooms, email)
      await verify(rooms, tokenIn(await smtp.next(email)))
      return made
    }

    test('an address must be verified by its link before it can sign in', async () => {
      await using rooms = await openRooms(source, env)
      const made = await signUp(rooms, 'ada@example.test')
      assert.deepEqual([made.cookies, made.json.user.emailVerified], [[], false])
      const early = await refusal(signIn(rooms, 'ada@example.test'))
      assert.deepEqual([early['code'], early['reason']], ['SIGN_IN_REFUSED', 'EMAIL_NOT_VERIFIED'])
      const mail = await smtp.next('ada@example.test')
      assert.match(mail.text, /^https:\/\/vitrine\.example\.com\/auth\/verify-email\?token=[\w.-]+$/m)
      const token = tokenIn(mail)
      const wrong = await refusal(verify(rooms, token, { password: OTHER }))
      assert.deepEqual([wrong['code'], wrong['reason']], ['UNAUTHENTICATED', 'INVALID_PASSWORD'])
      assert.equal((await refusal(signIn(rooms, 'ada@example.test')))['reason'], 'EMAIL_NOT_VERIFIED')
      const done = await verify(rooms, token)
      assert.deepEqual(done.json, { status: true, callbackURL: null })
      assert.ok(!done.cookies.some((line) => line.includes('session_token')))
      assert.deepEqual((await verify(rooms, token)).json, done.json)
      assert.equal((await signIn(rooms, 'ada@example.test')).json.user.emailVerified, true)
      await signUp(rooms, 'late@example.test')
      const late = tokenIn(await smtp.next('late@example.test'))
      // The library uses the system clock for the expiry of a link.
      rooms.clock.at += 3_700_000
      assert.equal((await refusal(verify(rooms, late)))['reason'], 'TOKEN_EXPIRED')
    })

    test('a link whose account is replaced during the password check verifies nothing', async () => {
      await using rooms = await openRooms(source, env)
      const email = 'raced@example.test'
      await signUp(rooms, email)
      const token = tokenIn(await smtp.next(email))
      await signUp(rooms, email, { password: OTHER })
      await smtp.next(email)
      const idOf = (of: string) =>
        rooms.store.db.selectFrom('accounts').select(['id', 'emailVerified']).where('email', '=', of).executeTakeFirst()
      const gone = newId<AccountId>()
      // These two replacements act like a sign-up after the password was checked.
      const links = { bound: () => '', opened: async () => ({ accountId: gone, email, endsAt: Infinity }) }
      const library = { isPassword: async () => true } as unknown as Library
      const told = await refusal(
        verifyEmail({ ...rooms, library, links, now: rooms.now() }, { token, password: PASSWORD }),
      )
      assert.equal(told['reason'], 'INVALID_TOKEN')
      assert.equal(Boolean((await idOf(email))?.emailVerified), false)
    })

    test('a changed link, a part of a link or an incomplete request verifies nothing', async () => {
      await using rooms = await openRooms(source, env)
      await signUp(rooms, 'ada@example.test')
      const token = tokenIn(await smtp.next('ada@example.test'))
      const [head = '', , signature = ''] = token.split('.')
      const forged = Buffer.from(JSON.stringify({ email: 'ada@example.test', exp: 9e9 })).toString('base64url')
      for (const bad of [`${token}x`, `${head}.${forged}.${signature}`, `${head}.${forged}.`, 'x', 'x'.repeat(3000)]) {
        const code = await codeOf(verify(rooms, bad))
        assert.equal(code, bad.length > 2000 ? 'INVALID_REQUEST' : 'UNAUTHENTICATED', bad)
      }
      for (const bad of ['', '?token=', `?token=${token}&more=1`]) {
        assert.equal(await codeOf(auth(rooms, `GET verify-email${bad}`)), 'INVALID_REQUEST', bad)
      }
      for (const body of [{ token }, { password: PASSWORD }, { token: '', password: PASSWORD }]) {
        assert.equal(await codeOf(auth(rooms, 'POST verify-email', body)), 'INVALID_REQUEST', JSON.stringify(body))
      }
      assert.equal(await codeOf(signIn(rooms, 'ada@example.test')), 'SIGN_IN_REFUSED')
    })

    test('a link ends with its account and does not verify the next account with the same address', async () => {
      await using rooms = await openRooms(source, env)
      const first = await verified(rooms, 'ada@example.test')
      await signUp(rooms, 'bo@example.test')
      const stale = [tokenIn(await smtp.next('bo@example.test'))]
      await auth(rooms, 'POST send-verification-email', { email: 'bo@example.test' })
      stale.push(tokenIn(await smtp.next('bo@example.test')))
      await auth(rooms, 'POST request-password-reset', { email: 'bo@example.test' })
      const late = tokenIn(await smtp.next('bo@example.test'))
      const bo = await rooms.store.db
        .selectFrom('accounts')
        .select('id')
        .where('email', '=', 'bo@example.test')
        .executeTakeFirstOrThrow()
      await deleteAccount(rooms, callOf(rooms, bo.id), { confirm: 'bo@example.test' })
      const unknown = await refusal(verify(rooms, 'x'))
      const told = async (token: string) => refusal(verify(rooms, token))
      for (const token of stale) assert.deepEqual(await told(token), unknown)
      assert.equal((await refusal(reset(rooms, late)))['reason'], 'INVALID_TOKEN')

      await signUp(rooms, 'bo@example.test')
      const fresh = tokenIn(await smtp.next('bo@example.test'))
      for (const token of stale) assert.deepEqual(await told(token), unknown)
      // A part of a link, and the proof of another link, are refused too.
      const cut = (token = '') => token.slice(0, token.lastIndexOf('.'))
      const proof = stale[0]?.slice(cut(stale[0]).length)
      for (const token of [cut(fresh), `${cut(fresh)}${proof}`]) assert.deepEqual(await told(token), unknown)
      assert.equal((await refusal(signIn(rooms, 'bo@example.test')))['reason'], 'EMAIL_NOT_VERIFIED')
      await verify(rooms, fresh)
      assert.equal((await signIn(rooms, 'bo@example.test')).json.user.emailVerified, true)
      assert.notEqual(first.json.user.id, bo.id)
    })

    test('known and unknown addresses get the same answer at sign-up, reset and verification', async () => {
      await using rooms = await openRooms(source, env)
      await verified(rooms, 'known@example.test')
      const bodies = { name: 'Ada', password: OTHER }
      const shapeOf = (answer: Awaited<ReturnType<typeof signUp>>) => ({
        keys: JSON.stringify(answer.json, (_, value: unknown) => (typeof value === 'object' ? value : typeof value)),
        cookies: answer.cookies,
        name: answer.json.user?.name,
      })
      const known = await auth(rooms, 'POST sign-up/email', { ...bodies, email: 'Known@example.test' })
      const unknown = await auth(rooms, 'POST sign-up/email', { ...bodies, email: 'unknown@example.test' })
      assert.deepEqual(shapeOf(known), shapeOf(unknown))
      assert.deepEqual(known.cookies, [])
      assert.match((await smtp.next('known@example.test')).text, /already has an account/)
      assert.match((await smtp.next('unknown@example.test')).text, /verify-email/)
      assert.equal(await codeOf(signIn(rooms, 'known@example.test', OTHER)), 'UNAUTHENTICATED')
      await signIn(rooms, 'known@example.test')
      for (const route of ['request-password-reset', 'send-verification-email']) {
        const told = await Promise.all(
          ['known@example.test', 'unknown@example.test', 'nobody@example.test'].map((email) =>
            auth(rooms, `POST ${route}`, { email }),
          ),
        )
        assert.equal(new Set(told.map((each) => each.text)).size, 1, route)
      }
      const twice = await Promise.all([signUp(rooms, 'twin@example.test'), signUp(rooms, 'twin@example.test')])
      assert.deepEqual(shapeOf(twice[0]), shapeOf(twice[1]))
      assert.ok(!smtp.received.some((mail) => mail.to.includes('nobody@example.test')))
    })

    test('a reset link works once until it expires, and ends all sessions and all other links', async () => {
      await using rooms = await openRooms(source, env)
      const gate = authenticator(rooms)
      const email = 'reset@example.test'
      await verified(rooms, email)
      const { cookie } = await signIn(rooms, email)
      const { token: jwt } = (await auth(rooms, 'GET token', undefined, { cookie })).json
      await gate.authenticate(`Bearer ${jwt}`)
      const ask = async () => {
        await auth(rooms, 'POST request-password-reset', { email })
        return tokenIn(await smtp.next(email, LINK))
      }
      const [first, second] = [await ask(), await ask()]
      const stored = await rooms.store.db.selectFrom('verifications').selectAll().execute()
      assert.ok(!JSON.stringify(stored).includes(first), 'a link can be read in the store')
      assert.equal(await codeOf(reset(rooms, first, { newPassword: 'short' })), 'INVALID_REQUEST')
      const done = await reset(rooms, first)
      assert.ok(!done.cookies.some((line) => line.includes('session_token')))
      assert.deepEqual(done.json.ended, {
        sessions: 1,
        keys: [],
        grants: [],
        passkeys: [],
        providers: [],
        secondFactor: false,
      })
      for (const used of [first, second, 'x', `${first}x`]) {
        assert.deepEqual((await refusal(reset(rooms, used)))['reason'], 'INVALID_TOKEN')
      }
      assert.equal(await codeOf(gate.authenticate(`Bearer ${jwt}`)), 'UNAUTHENTICATED')
      assert.equal((await auth(rooms, 'GET get-session', undefined, { cookie })).json, null)
      assert.equal(await codeOf(signIn(rooms, email)), 'UNAUTHENTICATED')
      await signIn(rooms, email, OTHER)

      const overtaken = await ask()
      const change = { currentPassword: OTHER, newPassword: PASSWORD }
      await auth(rooms, 'POST change-password', change, { cookie: (await signIn(rooms, email, OTHER)).cookie })
      assert.deepEqual((await refusal(reset(rooms, overtaken)))['reason'], 'INVALID_TOKEN')

      const late = await ask()
      const expiresAt = storedTime(dialect, 0)
      await rooms.store.write((tx) => tx.updateTable('verifications').set({ expiresAt }).execute())
      assert.deepEqual((await refusal(reset(rooms, late)))['reason'], 'INVALID_TOKEN')
      await signIn(rooms, email)
    })

    test('a new password ends concurrent sign-ins, and only one of a concurrent reset and password change succeeds', async () => {
      await using rooms = await openRooms(source, env)
      const email = 'hasty@example.test'
      await verified(rooms, email)
      const link = async () => {
        await auth(rooms, 'POST request-password-reset', { email })
        return tokenIn(await smtp.next(email, LINK))
      }
      const token = await link()
      const late = Array.from({ length: 7 }, () => codeOf(signIn(rooms, email)))
      const [, ...told] = await Promise.all([reset(rooms, token), ...late.map((each) => each.catch(() => 'signed in'))])
      const left = await rooms.store.db.selectFrom('sessions').select('id').execute()
      assert.deepEqual(left, [], `sessions by the old password live on: ${told.join()}`)

      const thief = (await signIn(rooms, email, OTHER)).cookie
      const change = { currentPassword: OTHER, newPassword: 'what a thief wants' }
      const again = await link()
      const [done, changed] = await Promise.allSettled([
        reset(rooms, again, { newPassword: 'what the owner wants' }),
        auth(rooms, 'POST change-password', change, { cookie: thief }),
      ])
      // Otherwise the later request would have overwritten the earlier one.
      assert.notEqual(done.status, changed.status)
      await signIn(rooms, email, done.status === 'fulfilled' ? 'what the owner wants' : change.newPassword)
    })

    test('a mailed link proves the address and ends the keys of an earlier holder', async () => {
      await using rooms = await openRooms(source, env)
      const gate = authenticator(rooms)
      const email = 'squatted@example.test'
      await signUp(rooms, email)
      await smtp.next(email)
      const { id } = await rooms.store.db.selectFrom('accounts').select('id').executeTakeFirstOrThrow()
      const made = await createKey(rooms, await sessionOf(rooms, id), { name: 'k', scopes: ['profile'] })
      const { key } = made
      await gate.authenticate(`Bearer ${key}`)
      await auth(rooms, 'POST request-password-reset', { email })
      const token = tokenIn(await smtp.next(email))
      const held = (await auth(rooms, 'POST reset-password/preview', { token })).json
      assert.deepEqual([held.mayKeep, held.keys.map((each: { id: string }) => each.id)], [false, [made.id]])
      await reset(rooms, token, { keep: { keyIds: [made.id] } })
      assert.equal(await codeOf(gate.authenticate(`Bearer ${key}`)), 'UNAUTHENTICATED')
      assert.equal((await signIn(rooms, email, OTHER)).json.user.emailVerified, true)
    })

    test('a link leads only to paths of this service', async () => {
      await using rooms = await openRooms(source, env)
      for (const [asked, path] of [
        ['/app/welcome?x=1', '/app/welcome?x=1'],
        ['https://vitrine.example.com/there', '/there'],
        ['http://localhost:3000/app#token=x', '/app'],
      ] as const) {
        const email = `to${path.length}@example.test`
        await signUp(rooms, email, { callbackURL: asked })
        const { text } = await smtp.next(email)
        assert.ok(text.includes(`&callbackURL=${encodeURIComponent(path)}`), text)
        if (path.startsWith('/app/')) {
          assert.match(text, /^https:\/\/vitrine\.example\.com\/app\/verify\?token=/m)
        } else {
          const query = /verify-email(\?\S+)/.exec(text)?.[1] ?? ''
          const answer = await rooms.signIn.handle(new Request(`http://127.0.0.1:3000/auth/verify-email${query}`))
          assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, 'text/html; charset=utf-8'])
        }
        const done = await verify(rooms, tokenIn({ text }), { callbackURL: asked })
        assert.equal(done.json.callbackURL, path)
        await auth(rooms, 'POST request-password-reset', { email, redirectTo: asked })
        const mail = await smtp.next(email)
        assert.match(
          mail.text,
          new RegExp(`^https://vitrine\\.example\\.com${path.replace('?', '\\?')}[?&]token=`, 'm'),
        )
      }
      // A page reads the first token, so there must be only one.
      const planted = '/auth/reset-password?token=planted&x=1&token=too'
      await auth(rooms, 'POST request-password-reset', { email: 'to4@example.test', redirectTo: planted })
      const sent = new URL(/https:\S+/.exec((await smtp.next('to4@example.test')).text)?.[0] ?? '')
      assert.deepEqual([sent.searchParams.get('x'), sent.searchParams.getAll('token').length], ['1', 1])
      assert.doesNotMatch(sent.href, /planted|too/)
      for (const elsewhere of [
        'https://evil.example/',
        '//evil.example',
        '/\\evil.example',
        '/.//evil.example',
        '/..//evil.example',
        '/%2f/evil.example',
        '/\t/evil.example',
        'https://vitrine.example.com@evil.example/',
        'https://vitrine.example.com.evil.example/',
        'http://127.0.0.1:3001/',
        'javascript:alert(1)',
        'app',
        '',
      ]) {
        const asked = encodeURIComponent(elsewhere)
        for (const work of [
          auth(rooms, `GET verify-email?token=x&callbackURL=${asked}`),
          verify(rooms, 'x', { callbackURL: elsewhere }),
          signUp(rooms, 'a@example.test', { callbackURL: elsewhere }),
          auth(rooms, 'POST send-verification-email', { email: 'a@example.test', callbackURL: elsewhere }),
          auth(rooms, 'POST request-password-reset', { email: 'a@example.test', redirectTo: elsewhere }),
        ]) {
          assert.equal(await codeOf(work), 'INVALID_REQUEST', elsewhere)
        }
      }
    })

    test('a link has the configured origin, whatever the Host header is', async () => {
      await using rooms = await openRooms(source, env)
      const request = new Request('http://evil.example/auth/sign-up/email', {
        method: 'POST',
        headers: { 'content-type': 'application/json', host: 'evil.example', 'x-forwarded-host': 'evil.example' },
        body: JSON.stringify({ name: 'Ada', email: 'host@example.test', password: PASSWORD }),
      })
      assert.equal((await rooms.signIn.handle(request)).status, 200)
      const { text, html } = await smtp.next('host@example.test')
      assert.doesNotMatch(text + html, /evil/)
    })

    test('if too many mails were requested, none is sent and the answer is the same, but known devices still get mail', async () => {
      await using rooms = await openRooms(source, env)
      const [email, nobody] = ['first@example.test', 'nobody@example.test']
      await verified(rooms, email)
      const device = (await signIn(rooms, email)).cookie
      const from = (n: number) => ({ headers: { 'x-vitrine-client': `10.0.${n}.1` } })
      const ask = async (to: string, asked: object) =>
        (await auth(rooms, 'POST request-password-reset', { email: to }, asked)).text
      const before = smtp.received.length
      const told = new Set<string>()
      for (let i = 0; i < 18; i++) for (const to of [email, nobody]) told.add(await ask(to, from(Math.floor(i / 6))))
      assert.equal(told.size, 1)
      const links: string[] = []
      for (let i = 0; i < 10; i++) links.push(tokenIn(await smtp.next(email, LINK)))
      assert.equal(smtp.received.length, before + 10)
      // Another kind of mail has its own limit, and so has a device that knew the password.
      await auth(rooms, 'POST send-verification-email', { email: 'new@example.test' }, from(1))
      await ask(email, { ...from(1), cookie: device })
      links.push(tokenIn(await smtp.next(email, LINK)))
      // A link that a stranger requested also works for the owner.
      await reset(rooms, links[0] ?? '')
      await signIn(rooms, email, OTHER)
      rooms.clock.at += 3_600_000
      await ask(email, from(1))
      await smtp.next(email, LINK)
    })

    test('after a reset, the new password works in this browser, even if browsers that knew the old one make many guesses', async () => {
      await using rooms = await openRooms(source, env)
      const email = 'robbed@example.test'
      await verified(rooms, email)
      const thieves: string[] = []
      for (let i = 0; i < 11; i++) thieves.push((await signIn(rooms, email)).cookie)
      await auth(rooms, 'POST request-password-reset', { email })
      const done = await reset(rooms, tokenIn(await smtp.next(email, LINK)))
      const guess = (n: number, cookie?: string) =>
        codeOf(
          auth(
            rooms,
            'POST sign-in/email',
            { email, password: PASSWORD },
            { cookie, headers: { 'x-vitrine-client': `10.1.${n}.1` } },
          ),
        )
      let n = 0
      for (const cookie of thieves) for (let i = 0; i < 10; i++) await guess(n++, cookie)
      assert.equal(await guess(n, thieves[0]), 'RATE_LIMITED', 'the guesses count as those of strangers')
      const right = { email, password: OTHER }
      const signedIn = await auth(rooms, 'POST sign-in/email', right, { cookie: done.cookie })
      assert.equal(signedIn.json.user.email, email)
      assert.equal(await codeOf(auth(rooms, 'POST sign-in/email', right, { cookie: thieves[1] })), 'RATE_LIMITED')
      // When the password is changed, the browser that changes it is the only one that stays known.
      const change = { currentPassword: OTHER, newPassword: PASSWORD }
      const changed = await auth(rooms, 'POST change-password', change, { cookie: signedIn.cookie })
      const back = (cookie: string) => auth(rooms, 'POST sign-in/email', { email, password: PASSWORD }, { cookie })
      assert.equal((await back(changed.cookie)).json.user.email, email)
      assert.equal(await codeOf(back(done.cookie)), 'RATE_LIMITED')
    })

    test('a sign-up after too many mails changes nothing, and its answer is the same', async () => {
      await using rooms = await openRooms(source, env)
      const email = 'often@example.test'
      await signUp(rooms, 'first@example.test')
      const shapes = new Set<string>()
      for (let i = 0; i < 7; i++) {
        const { json } = await signUp(rooms, email, { password: `${OTHER} ${i}` })
        shapes.add(JSON.stringify(json, (_, value: unknown) => (typeof value === 'object' ? value : typeof value)))
        assert.deepEqual([json.user.email, json.user.name, json.user.emailVerified], [email, 'Ada', false])
      }
      assert.equal(shapes.size, 1)
      let last = ''
      for (let i = 0; i < 5; i++) last = tokenIn(await smtp.next(email))
      await verify(rooms, last, { password: `${OTHER} 4` })
      await signIn(rooms, email, `${OTHER} 4`)
    })

    test('a sign-up by a stranger never gives the stranger access, and the owner of the address can replace it', async () => {
      await using rooms = await openRooms(source, env)
      const gate = authenticator(rooms)
      const email = 'owner@example.test'
      await signUp(rooms, 'first@example.test')
      const stranger = { password: 'what a stranger chose', name: 'Eve' }
      await signUp(rooms, email, stranger)
      const [first, idOf] = [
        tokenIn(await smtp.next(email)),
        async () =>
          (await rooms.store.db.selectFrom('accounts').select('id').where('email', '=', email).executeTakeFirst())?.id,
      ]
      const theirs = await idOf()
      assert.ok(theirs)
      // This key was created before mail was on.
      const { key } = await createKey(rooms, await sessionOf(rooms, theirs), { name: 'k', scopes: ['profile'] })
      await auth(rooms, 'POST request-password-reset', { email })
      const oldReset = tokenIn(await smtp.next(email))
      assert.equal((await refusal(verify(rooms, first)))['reason'], 'INVALID_PASSWORD')

      await signUp(rooms, email)
      const second = tokenIn(await smtp.next(email))
      assert.notEqual(await idOf(), theirs)
      assert.equal(await codeOf(gate.authenticate(`Bearer ${key}`)), 'UNAUTHENTICATED')
      for (const password of [stranger.password, PASSWORD]) {
        assert.equal((await refusal(verify(rooms, first, { password })))['reason'], 'INVALID_TOKEN')
      }
      assert.equal(
        (await refusal(verify(rooms, second, { password: stranger.password })))['reason'],
        'INVALID_PASSWORD',
      )
      // A stranger requested this link, but only the owner of the address got it.
      assert.equal((await auth(rooms, 'POST reset-password/preview', { token: oldReset })).json.mayKeep, false)
      await verify(rooms, second)
      assert.equal(await codeOf(signIn(rooms, email, stranger.password)), 'UNAUTHENTICATED')
      const { json } = await signIn(rooms, email)
      assert.deepEqual([json.user.name, json.user.emailVerified], ['Ada', true])
      // Another sign-up changes nothing now.
      await signUp(rooms, email, stranger)
      assert.match((await smtp.next(email)).text, /already has an account/)
      await signIn(rooms, email)
    })

    test('a reset link still works when its unverified account is replaced', async () => {
      await using rooms = await openRooms(source, env)
      const email = 'besieged@example.test'
      const eve = { name: 'Eve', password: PASSWORD }
      await signUp(rooms, email, eve)
      await auth(rooms, 'POST request-password-reset', { email })
      const link = tokenIn(await smtp.next(email, /reset-password/))
      // Otherwise a stranger could use up the limit of mails, and then make the owner's links invalid by signing up.
      await signUp(rooms, email, eve)
      await reset(rooms, link)
      assert.equal((await signIn(rooms, email, OTHER)).json.user.emailVerified, true)
      assert.equal(await codeOf(signIn(rooms, email)), 'UNAUTHENTICATED')
      assert.equal((await refusal(reset(rooms, link)))['reason'], 'INVALID_TOKEN')
    })

    test('an unverified account in a team is never replaced', async () => {
      await using rooms = await openRooms(source, env)
      const call = await someone(rooms, 'early@example.test')
      await createTeam(rooms, call, { name: 'T' })
      await signUp(rooms, 'early@example.test')
      assert.match((await smtp.next('early@example.test')).text, /already has an account/)
      assert.equal((await listTeams(rooms, call)).length, 1)
    })

    test('two concurrent sign-ups with one address leave one account, which its own password verifies', async () => {
      await using rooms = await openRooms(source, env)
      const email = 'pair@example.test'
      await signUp(rooms, 'first@example.test')
      const passwords = [`${OTHER} 0`, `${OTHER} 1`]
      await Promise.all(passwords.map((password) => signUp(rooms, email, { password })))
      const mails = [await smtp.next(email), await smtp.next(email)]
      const tokens = mails.filter((mail) => LINK.test(mail.text)).map(tokenIn)
      const tries = await Promise.all(
        tokens.flatMap((token) =>
          passwords.map((password) =>
            verify(rooms, token, { password }).then(
              () => password,
              () => null,
            ),
          ),
        ),
      )
      const right = tries.filter((password) => password !== null)
      assert.equal(right.length, 1)
      await signIn(rooms, email, right[0])
      assert.equal((await rooms.store.db.selectFrom('accounts').select('id').execute()).length, 2)
    })

    test('a new password ends all keys that are not kept, and only one of two requests with one link succeeds', async () => {
      await using rooms = await openRooms(source, env)
      const gate = authenticator(rooms)
      const email = 'keys@example.test'
      await verified(rooms, email)
      const { id } = (await signIn(rooms, email)).json.user
      const make = async (name: string) => {
        // Keys are listed by creation time.
        rooms.clock.at++
        return createKey(rooms, await sessionOf(rooms, id), { name, scopes: ['profile'] })
      }
      const [kept, ended] = [await make('kept'), await make('ended')]
      const ask = async () => {
        await auth(rooms, 'POST request-password-reset', { email })
        return tokenIn(await smtp.next(email, LINK))
      }
      const token = await ask()
      const held = (await auth(rooms, 'POST reset-password/preview', { token })).json
      assert.deepEqual(
        held.keys.map((key: { name: string; hint: string }) => [key.name, key.hint]),
        [kept, ended].map(({ name, hint }) => [name, hint]),
      )
      assert.deepEqual([held.secondFactor, held.mayKeep], [false, true])
      const foreign = await refusal(reset(rooms, token, { keep: { keyIds: [id] } }))
      assert.deepEqual(
        [foreign['code'], String(foreign['details'])],
        ['INVALID_REQUEST', 'keep.keyIds: contains a key that this account does not have'],
      )
      const done = (await reset(rooms, token, { keep: { keyIds: [kept.id] } })).json
      const named = ({ id: keyId, name, hint }: typeof kept) => ({ id: keyId, name, hint })
      assert.deepEqual([done.ended.keys, done.kept.keys], [[named(ended)], [named(kept)]])
      await gate.authenticate(`Bearer ${kept.key}`)
      assert.equal(await codeOf(gate.authenticate(`Bearer ${ended.key}`)), 'UNAUTHENTICATED')

      const again = await ask()
      const both = await Promise.allSettled([
        reset(rooms, again, { newPassword: `${OTHER} 0` }),
        reset(rooms, again, { newPassword: `${OTHER} 1` }),
      ])
      assert.deepEqual(both.map((each) => each.status).sort(), ['fulfilled', 'rejected'])
      await signIn(rooms, email, `${OTHER} ${both[0]?.status === 'fulfilled' ? 0 : 1}`)
      assert.equal(
        await codeOf(gate.authenticate(`Bearer ${kept.key}`)),
        'UNAUTHENTICATED',
        'the default ends all keys',
      )
      for (const bad of ['x', again]) {
        assert.equal(
          (await refusal(auth(rooms, 'POST reset-password/preview', { token: bad })))['reason'],
          'INVALID_TOKEN',
        )
      }
    })

    test('a person who used a reset link can sign in, even if strangers have guessed often', async () => {
      await using rooms = await openRooms(source, env)
      const email = 'guessed@example.test'
      await verified(rooms, email)
      for (let i = 0; i < 101; i++) {
        const headers = { 'x-vitrine-client': `10.1.${i}.1` }
        await codeOf(auth(rooms, 'POST sign-in/email', { email, password: `no ${i}` }, { headers }))
      }
      const elsewhere = { headers: { 'x-vitrine-client': '192.0.2.7' } }
      const locked = auth(rooms, 'POST sign-in/email', { email, password: PASSWORD }, elsewhere)
      assert.equal(await codeOf(locked), 'RATE_LIMITED')
      await auth(rooms, 'POST request-password-reset', { email }, elsewhere)
      const { cookie } = await reset(rooms, tokenIn(await smtp.next(email, LINK)))
      await auth(rooms, 'POST sign-in/email', { email, password: OTHER }, { ...elsewhere, cookie })
    })

    test('addresses are ASCII and case-insensitive, without further case folding', async () => {
      await using rooms = await openRooms(source, env)
      await verified(rooms, 'plus@example.test')
      for (const bad of [
        'ＡＤＡ@example.test',
        'é@example.test',
        'plus@exämple.test',
        'plus@example.test.',
        'plus@example.test\0',
        '\u212Aelvin@example.test',
        `${'a'.repeat(250)}@example.test`,
      ]) {
        assert.equal(await codeOf(signUp(rooms, bad)), 'INVALID_REQUEST', bad)
        assert.equal(await codeOf(signIn(rooms, bad)), 'INVALID_REQUEST', bad)
      }
      await signIn(rooms, 'PLUS@Example.TEST')
      for (const other of ['plus+1@example.test', 'p.lus@example.test']) {
        assert.equal(await codeOf(signIn(rooms, other)), 'UNAUTHENTICATED', other)
      }
    })
  })

  test(`without SMTP on ${dialect}, a link is logged once, and no verification is needed`, async () => {
    await using source = await storeSource(dialect)
    await using rooms = await openRooms(source)
    const { cookie } = await signUp(rooms, 'ada@example.test')
    assert.notEqual(cookie, '')
    await auth(rooms, 'POST request-password-reset', { email: 'ada@example.test' })
    await auth(rooms, 'POST request-password-reset', { email: 'nobody@example.test' })
    assert.deepEqual(
      rooms.logged.map((line) => [line['mail'], line['to']]),
      [
        ['verification', 'ada@example.test'],
        ['password reset', 'ada@example.test'],
      ],
    )
    const [verification, forgotten] = rooms.logged.map((line) => tokenIn({ text: String(line['link']) }))
    await verify(rooms, verification ?? '')
    await reset(rooms, forgotten ?? '')
    assert.equal((await signIn(rooms, 'ada@example.test', OTHER)).json.user.emailVerified, true)
    assert.equal(rooms.logged.length, 2)
  })

  test(`on ${dialect}, the demo account is verified without a link if there is a demo`, async () => {
    await using source = await storeSource(dialect)
    for (const demo of [true, false]) {
      await using rooms = await openRooms(source, { VITRINE_DEMO: demo ? '1' : '0' })
      const made = await signUp(rooms, DEMO_EMAIL)
      assert.deepEqual([made.json.user.emailVerified, rooms.logged.length], [demo, demo ? 0 : 1])
      assert.equal((await signUp(rooms, 'ada@example.test')).json.user.emailVerified, false)
    }
  })
}
