// What of signing in goes by mail: verification, a new password, and that no answer tells which addresses exist. On both
// stores, with a real SMTP server.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startSmtp, tokenIn, type TestSmtp } from '../../test/support/mail.ts'
import { auth, callOf, codeOf, openRooms, PASSWORD, refusal, type Rooms } from '../../test/support/people.ts'
import { storeSource, type StoreSource } from '../../test/support/stores.ts'
import { DEMO_EMAIL } from '../config.ts'
import { deleteAccount } from './accounts.ts'
import { createKey } from './api-keys.ts'
import { authenticator } from './caller.ts'

const signUp = (rooms: Rooms, email: string, more: object = {}) =>
  auth(rooms, 'POST sign-up/email', { name: 'Ada', email, password: PASSWORD, ...more })
const signIn = (rooms: Rooms, email: string, password = PASSWORD) =>
  auth(rooms, 'POST sign-in/email', { email, password })
const OTHER = 'another long password'

for (const dialect of ['sqlite', 'postgres'] as const) {
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
      await auth(rooms, `GET verify-email?token=${tokenIn(await smtp.next(email))}`)
      return made
    }

    test('an address is verified by its link before it may sign in', async () => {
      await using rooms = await openRooms(source, env)
      const made = await signUp(rooms, 'ada@example.test')
      assert.deepEqual([made.cookies, made.json.token, made.json.user.emailVerified], [[], null, false])
      const early = await refusal(signIn(rooms, 'ada@example.test'))
      assert.deepEqual([early['code'], early['reason']], ['SIGN_IN_REFUSED', 'EMAIL_NOT_VERIFIED'])
      const mail = await smtp.next('ada@example.test')
      assert.match(mail.text, /^https:\/\/vitrine\.example\.com\/auth\/verify-email\?token=[\w.-]+$/m)
      const link = `GET verify-email?token=${tokenIn(mail)}`
      const done = await auth(rooms, link)
      assert.deepEqual([done.json.status, done.cookies], [true, []])
      // Programs that look into mails open links: a second time is no harm and no news.
      assert.deepEqual((await auth(rooms, link)).cookies, [])
      assert.equal((await signIn(rooms, 'ada@example.test')).json.user.emailVerified, true)
    })

    test('a link that was changed, made for another, or has expired verifies nobody', async () => {
      await using rooms = await openRooms(source, env)
      await signUp(rooms, 'ada@example.test')
      const token = tokenIn(await smtp.next('ada@example.test'))
      const [head = '', , signature = ''] = token.split('.')
      const forged = Buffer.from(JSON.stringify({ email: 'ada@example.test', exp: 9e9 })).toString('base64url')
      for (const bad of [`${token}x`, `${head}.${forged}.${signature}`, `${head}.${forged}.`, 'x', 'x'.repeat(3000)]) {
        const code = await codeOf(auth(rooms, `GET verify-email?token=${bad}`))
        assert.equal(code, bad.length > 2000 ? 'INVALID_REQUEST' : 'UNAUTHENTICATED', bad)
      }
      for (const bad of ['', '?token=', `?token=${token}&more=1`]) {
        assert.equal(await codeOf(auth(rooms, `GET verify-email${bad}`)), 'INVALID_REQUEST', bad)
      }
      assert.equal(await codeOf(signIn(rooms, 'ada@example.test')), 'SIGN_IN_REFUSED')
    })

    test('links end with their account, also for whoever signs up with its address next', async () => {
      await using rooms = await openRooms(source, env)
      const first = await verified(rooms, 'ada@example.test')
      await signUp(rooms, 'bo@example.test')
      const stale = [tokenIn(await smtp.next('bo@example.test'))]
      await auth(rooms, 'POST send-verification-email', { email: 'bo@example.test' })
      stale.push(tokenIn(await smtp.next('bo@example.test')))
      await auth(rooms, 'POST request-password-reset', { email: 'bo@example.test' })
      const reset = tokenIn(await smtp.next('bo@example.test'))
      const bo = await rooms.store.db
        .selectFrom('accounts')
        .select('id')
        .where('email', '=', 'bo@example.test')
        .executeTakeFirstOrThrow()
      await deleteAccount(rooms, callOf(rooms, bo.id), { confirm: 'bo@example.test' })
      const unknown = await refusal(auth(rooms, 'GET verify-email?token=x'))
      const told = async (token: string) => refusal(auth(rooms, `GET verify-email?token=${token}`))
      for (const token of stale) assert.deepEqual(await told(token), unknown)
      const led = await auth(rooms, `GET verify-email?token=${stale[0]}&callbackURL=/app`)
      const ledUnknown = await auth(rooms, 'GET verify-email?token=x&callbackURL=/app')
      assert.equal(led.location, ledUnknown.location)
      assert.match(String(led.location), /error=INVALID_TOKEN/)
      const late = await refusal(auth(rooms, 'POST reset-password', { token: reset, newPassword: OTHER }))
      assert.equal(late['reason'], 'INVALID_TOKEN')

      await signUp(rooms, 'bo@example.test')
      const fresh = tokenIn(await smtp.next('bo@example.test'))
      for (const token of stale) assert.deepEqual(await told(token), unknown)
      // Nor does a part of a link do, or the proof of another one.
      const cut = (token = '') => token.slice(0, token.lastIndexOf('.'))
      const proof = stale[0]?.slice(cut(stale[0]).length)
      for (const token of [cut(fresh), `${cut(fresh)}${proof}`]) assert.deepEqual(await told(token), unknown)
      assert.equal((await refusal(signIn(rooms, 'bo@example.test')))['reason'], 'EMAIL_NOT_VERIFIED')
      await auth(rooms, `GET verify-email?token=${fresh}`)
      assert.equal((await signIn(rooms, 'bo@example.test')).json.user.emailVerified, true)
      assert.notEqual(first.json.user.id, bo.id)
    })

    test('a known and an unknown address read the same at sign-up, reset and verification', async () => {
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
      assert.deepEqual([known.json.token, known.cookies], [null, []])
      assert.match((await smtp.next('known@example.test')).text, /has an account already/)
      assert.match((await smtp.next('unknown@example.test')).text, /verify-email/)
      // The account of who was there before is as it was.
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

    test('a new password is set once, within its hour, and ends every session and every other link', async () => {
      await using rooms = await openRooms(source, env)
      const gate = authenticator(rooms)
      const email = 'reset@example.test'
      await verified(rooms, email)
      const { cookie } = await signIn(rooms, email)
      const { token: jwt } = (await auth(rooms, 'GET token', undefined, { cookie })).json
      await gate.authenticate(`Bearer ${jwt}`)
      const ask = async () => {
        await auth(rooms, 'POST request-password-reset', { email })
        return tokenIn(await smtp.next(email))
      }
      const [first, second] = [await ask(), await ask()]
      const stored = await rooms.store.db.selectFrom('verifications').selectAll().execute()
      assert.ok(!JSON.stringify(stored).includes(first), 'a link can be read in the store')
      const reset = (token: string, newPassword = OTHER) => auth(rooms, 'POST reset-password', { token, newPassword })
      assert.equal(await codeOf(reset(first, 'short')), 'INVALID_REQUEST')
      assert.deepEqual((await reset(first)).cookies, [])
      for (const used of [first, second, 'x', `${first}x`]) {
        assert.deepEqual((await refusal(reset(used)))['reason'], 'INVALID_TOKEN')
      }
      assert.equal(await codeOf(gate.authenticate(`Bearer ${jwt}`)), 'UNAUTHENTICATED')
      assert.equal((await auth(rooms, 'GET get-session', undefined, { cookie })).json, null)
      assert.equal(await codeOf(signIn(rooms, email)), 'UNAUTHENTICATED')
      await signIn(rooms, email, OTHER)

      const overtaken = await ask()
      const change = { currentPassword: OTHER, newPassword: PASSWORD }
      await auth(rooms, 'POST change-password', change, { cookie: (await signIn(rooms, email, OTHER)).cookie })
      assert.deepEqual((await refusal(reset(overtaken)))['reason'], 'INVALID_TOKEN')

      const late = await ask()
      const expiresAt = dialect === 'postgres' ? new Date(0) : new Date(0).toISOString()
      await rooms.store.write((tx) => tx.updateTable('verifications').set({ expiresAt }).execute())
      assert.deepEqual((await refusal(reset(late)))['reason'], 'INVALID_TOKEN')
      await signIn(rooms, email)
    })

    test('a link that came by mail proves the address, and ends keys made by whoever held it before', async () => {
      await using rooms = await openRooms(source, env)
      const gate = authenticator(rooms)
      const email = 'squatted@example.test'
      await signUp(rooms, email)
      await smtp.next(email)
      const { id } = await rooms.store.db.selectFrom('accounts').select('id').executeTakeFirstOrThrow()
      const { key } = await createKey(rooms, callOf(rooms, id), { name: 'k', scopes: ['profile'] })
      await gate.authenticate(`Bearer ${key}`)
      await auth(rooms, 'POST request-password-reset', { email })
      await auth(rooms, 'POST reset-password', { token: tokenIn(await smtp.next(email)), newPassword: OTHER })
      assert.equal(await codeOf(gate.authenticate(`Bearer ${key}`)), 'UNAUTHENTICATED')
      assert.equal((await signIn(rooms, email, OTHER)).json.user.emailVerified, true)

      const later = await createKey(rooms, callOf(rooms, id), { name: 'k', scopes: ['profile'] })
      await auth(rooms, 'POST request-password-reset', { email })
      await auth(rooms, 'POST reset-password', { token: tokenIn(await smtp.next(email)), newPassword: PASSWORD })
      await gate.authenticate(`Bearer ${later.key}`)
    })

    test('a link leads on to a path of ours and nowhere else', async () => {
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
        const query = /verify-email(\?\S+)/.exec(text)?.[1] ?? ''
        const answer = await rooms.signIn.handle(new Request(`http://127.0.0.1:3000/auth/verify-email${query}`))
        assert.deepEqual([answer.status, answer.headers.get('location')], [302, path])
        await auth(rooms, 'POST request-password-reset', { email, redirectTo: asked })
        const reset = await smtp.next(email)
        assert.match(
          reset.text,
          new RegExp(`^https://vitrine\\.example\\.com${path.replace('?', '\\?')}[?&]token=`, 'm'),
        )
      }
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
          signUp(rooms, 'a@example.test', { callbackURL: elsewhere }),
          auth(rooms, 'POST send-verification-email', { email: 'a@example.test', callbackURL: elsewhere }),
          auth(rooms, 'POST request-password-reset', { email: 'a@example.test', redirectTo: elsewhere }),
        ]) {
          assert.equal(await codeOf(work), 'INVALID_REQUEST', elsewhere)
        }
      }
    })

    test('a link names the service as it was set up, whatever Host is asked', async () => {
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

    test('mails to one address are few, whether or not it has an account', async () => {
      await using rooms = await openRooms(source, env)
      await verified(rooms, 'first@example.test')
      for (const email of ['first@example.test', 'nobody@example.test']) {
        const codes: unknown[] = []
        for (let i = 0; i < 11; i++) {
          codes.push(
            await auth(rooms, 'POST request-password-reset', { email }).then(
              () => 'sent',
              (error: { code: string }) => error.code,
            ),
          )
        }
        assert.deepEqual([codes.at(0), codes.at(-1)], ['sent', 'RATE_LIMITED'], email)
      }
    })
  })

  test(`without SMTP links go to the log once, and nobody has to be verified, on ${dialect}`, async () => {
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
    const [verify, reset] = rooms.logged.map((line) => tokenIn({ text: String(line['link']) }))
    await auth(rooms, `GET verify-email?token=${verify}`)
    await auth(rooms, 'POST reset-password', { token: reset, newPassword: OTHER })
    assert.equal((await signIn(rooms, 'ada@example.test', OTHER)).json.user.emailVerified, true)
    assert.equal(rooms.logged.length, 2)
  })

  test(`the demo’s own account is verified without a link, where there is a demo, on ${dialect}`, async () => {
    await using source = await storeSource(dialect)
    for (const demo of [true, false]) {
      await using rooms = await openRooms(source, { VITRINE_DEMO: demo ? '1' : '0' })
      const made = await signUp(rooms, DEMO_EMAIL)
      assert.deepEqual([made.json.user.emailVerified, rooms.logged.length], [demo, demo ? 0 : 1])
      assert.equal((await signUp(rooms, 'ada@example.test')).json.user.emailVerified, false)
    }
  })
}
