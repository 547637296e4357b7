import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { LINK, startSmtp, tokenIn } from '../../test/support/mail.ts'
import { auth, codeOf, openRooms, PASSWORD, refusal, type Rooms } from '../../test/support/people.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { secretOf, stopDates, totp } from '../../test/support/totp.ts'
import { storedTime } from '../store/better-auth-times.ts'

const EMAIL = 'ada@example.test'
const signIn = (rooms: Rooms, password = PASSWORD) => auth(rooms, 'POST sign-in/email', { email: EMAIL, password })
const verify = (rooms: Rooms, cookie: string, code: string, more: object = {}) =>
  auth(rooms, 'POST two-factor/verify-totp', { code, ...more }, { cookie })
const verifyBackup = (rooms: Rooms, cookie: string, code: string) =>
  auth(rooms, 'POST two-factor/verify-backup-code', { code }, { cookie })
const tokenOf = (rooms: Rooms, cookie: string) => auth(rooms, 'GET token', undefined, { cookie })

interface SetUp {
  readonly uri: string
  readonly backupCodes: readonly string[]
  /** The session in which the second factor was turned on. */
  readonly cookie: string
}

/** Creates an account whose authenticator is confirmed. */
async function setUp(rooms: Rooms): Promise<SetUp> {
  const { cookie } = await auth(rooms, 'POST sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
  const { json } = await auth(rooms, 'POST two-factor/enable', { password: PASSWORD }, { cookie })
  // The previous code is still valid. Using it here leaves the current and the next code for the test.
  const done = await verify(rooms, cookie, totp(json.totpURI, -1))
  return { uri: json.totpURI, backupCodes: json.backupCodes, cookie: done.cookie }
}

stopDates()

for (const dialect of DIALECTS) {
  describe(`a second factor on ${dialect}`, () => {
    let source: StoreSource
    before(async () => {
      source = await storeSource(dialect)
    })
    after(() => source[Symbol.asyncDispose]())

    test('a second factor is on after its first code, and then the password alone is not enough', async () => {
      await using rooms = await openRooms(source)
      const { cookie } = await auth(rooms, 'POST sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
      const wrong = auth(rooms, 'POST two-factor/enable', { password: 'not it' }, { cookie })
      assert.equal(await codeOf(wrong), 'INVALID_REQUEST')
      const { json } = await auth(rooms, 'POST two-factor/enable', { password: PASSWORD }, { cookie })
      assert.match(json.totpURI, /^otpauth:\/\/totp\/Vitrine:ada%40example\.test\?secret=[A-Z2-7]{32,}&issuer=Vitrine/)
      assert.equal(new Set(json.backupCodes).size, 10)
      // The person may have lost the secret before sending a code, and must not be locked out.
      assert.equal((await signIn(rooms)).json.twoFactorRedirect, undefined)
      assert.equal(await codeOf(verify(rooms, cookie, '000000')), 'UNAUTHENTICATED')
      const elsewhere = (await signIn(rooms)).cookie
      await tokenOf(rooms, elsewhere)
      const on = await verify(rooms, cookie, totp(json.totpURI))
      for (const before of [cookie, elsewhere]) {
        assert.equal(await codeOf(tokenOf(rooms, before)), 'UNAUTHENTICATED', 'a session from before continues')
      }
      await tokenOf(rooms, on.cookie)

      const half = await signIn(rooms)
      assert.deepEqual(half.json, { twoFactorRedirect: true, twoFactorMethods: ['totp'] })
      for (const cookies of [half.cookie, half.cookies.map((each) => each.split(';')[0]).join('; ')]) {
        assert.equal(await codeOf(tokenOf(rooms, cookies)), 'UNAUTHENTICATED')
        assert.equal((await auth(rooms, 'GET get-session', undefined, { cookie: cookies })).json, null)
        for (const route of ['enable', 'disable', 'get-totp-uri', 'generate-backup-codes']) {
          const asked = auth(rooms, `POST two-factor/${route}`, { password: PASSWORD }, { cookie: cookies })
          assert.equal(await codeOf(asked), 'UNAUTHENTICATED', route)
        }
      }
      assert.equal((await rooms.store.db.selectFrom('sessions').selectAll().execute()).length, 1)
      assert.equal(await codeOf(verify(rooms, half.cookie, '000000')), 'UNAUTHENTICATED')
      const whole = await verify(rooms, half.cookie, totp(json.totpURI, 1))
      await tokenOf(rooms, whole.cookie)
    })

    test('two requests that turn the factor on at the same time end no session that was answered', async () => {
      for (const step of [0, 1]) {
        await using rooms = await openRooms(source)
        const { cookie } = await auth(rooms, 'POST sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
        const { json } = await auth(rooms, 'POST two-factor/enable', { password: PASSWORD }, { cookie })
        const both = await Promise.allSettled(
          [totp(json.totpURI), totp(json.totpURI, step)].map((code) => verify(rooms, cookie, code)),
        )
        // The later request is accepted without a new session, if it has another code.
        const accepted = both
          .filter((each) => each.status === 'fulfilled')
          .filter(({ value }) => value.cookie.includes('session_token'))
        assert.ok(accepted.length >= 1)
        const alive = await Promise.allSettled(accepted.map(({ value }) => tokenOf(rooms, value.cookie)))
        assert.deepEqual(
          alive.map(({ status }) => status),
          accepted.map(() => 'fulfilled'),
        )
      }
    })

    test('the secret and the codes of a second factor are encrypted in the store', async () => {
      await using rooms = await openRooms(source)
      const { uri, backupCodes, cookie } = await setUp(rooms)
      const code = backupCodes[9]
      const row = await rooms.store.db.selectFrom('second_factors').selectAll().executeTakeFirstOrThrow()
      const raw = Buffer.from(
        (secretOf(uri).match(/./g) ?? [])
          .map((letter) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0'))
          .join('')
          .match(/.{8}/g)
          ?.map((byte) => parseInt(byte, 2)) ?? [],
      ).toString()
      for (const secret of [secretOf(uri), raw, ...backupCodes]) assert.ok(!JSON.stringify(row).includes(secret))
      const again = await auth(rooms, 'POST two-factor/get-totp-uri', { password: PASSWORD, code }, { cookie })
      assert.equal(secretOf(again.json.totpURI), secretOf(uri))
    })

    test('a code signs in once, and the sign-in that waited for it is used up', async () => {
      await using rooms = await openRooms(source)
      const { uri } = await setUp(rooms)
      const [one, other] = [await signIn(rooms), await signIn(rooms)]
      const [code, next] = [totp(uri, 0), totp(uri, 1)]
      await verify(rooms, one.cookie, code)
      const sessions = async () => (await rooms.store.db.selectFrom('sessions').selectAll().execute()).length
      const before = await sessions()
      assert.deepEqual((await refusal(verify(rooms, other.cookie, code)))['reason'], 'INVALID_CODE')
      for (const spelling of ['two_factor = $1', 'two_factor="$1"']) {
        const spelt = (await signIn(rooms)).cookie.replace(/two_factor=([^;]*)/, spelling)
        assert.equal((await refusal(verify(rooms, spelt, code)))['reason'], 'INVALID_CODE', spelt)
      }
      assert.equal(await sessions(), before)
      assert.equal(await codeOf(verify(rooms, one.cookie, next)), 'UNAUTHENTICATED')
      const third = await signIn(rooms)
      await verify(rooms, third.cookie, next)
    })

    test('a backup code signs in once, and new backup codes replace the old ones', async () => {
      await using rooms = await openRooms(source)
      const { uri, backupCodes, cookie } = await setUp(rooms)
      const [first = '', second = ''] = backupCodes
      const signedIn = await verifyBackup(rooms, (await signIn(rooms)).cookie, first)
      await tokenOf(rooms, signedIn.cookie)
      const used = await refusal(verifyBackup(rooms, (await signIn(rooms)).cookie, first))
      assert.deepEqual([used['code'], used['reason']], ['UNAUTHENTICATED', 'INVALID_BACKUP_CODE'])
      const renew = { password: PASSWORD, code: totp(uri) }
      const { json } = await auth(rooms, 'POST two-factor/generate-backup-codes', renew, { cookie })
      assert.equal(await codeOf(verifyBackup(rooms, (await signIn(rooms)).cookie, second)), 'UNAUTHENTICATED')
      await verifyBackup(rooms, (await signIn(rooms)).cookie, json.backupCodes[0])
    })

    test('five wrong codes end a sign-in, and ten lock the second factor', async () => {
      await using rooms = await openRooms(source)
      const { uri } = await setUp(rooms)
      const right = [-1, 0, 1, 2].map((steps) => totp(uri, steps))
      const wrong = ['111111', '222222', '333333', '444444', '555555', '666666'].filter((code) => !right.includes(code))
      const reasons = async (cookie: string, count: number) => {
        const told: unknown[] = []
        for (let i = 0; i < count; i++) told.push((await refusal(verify(rooms, cookie, wrong[i % 4] ?? '')))['reason'])
        return told
      }
      const first = await signIn(rooms)
      assert.deepEqual((await reasons(first.cookie, 6)).at(-1), 'TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE')
      assert.equal((await refusal(verify(rooms, first.cookie, totp(uri))))['reason'], 'INVALID_TWO_FACTOR_COOKIE')
      const second = await signIn(rooms)
      await reasons(second.cookie, 5)
      const third = await signIn(rooms)
      const locked = await refusal(verify(rooms, third.cookie, totp(uri)))
      assert.deepEqual([locked['code'], locked['reason']], ['RATE_LIMITED', 'ACCOUNT_TEMPORARILY_LOCKED'])
      assert.ok(Number(locked['retryAfter']) > 0)
      const lockedUntil = storedTime(dialect, 0)
      await rooms.store.write((tx) => tx.updateTable('second_factors').set({ lockedUntil }).execute())
      await verify(rooms, third.cookie, totp(uri))
    })

    test('if many sign-ins in two processes send eighty wrong codes at once, at most ten are checked', async () => {
      await using stack = new AsyncDisposableStack()
      const rooms = stack.use(await openRooms(source))
      const again = { ...source, config: () => Promise.resolve(rooms.config) }
      const other = dialect === 'sqlite' ? rooms : stack.use(await openRooms(again))
      rooms.clock.at = Date.now()
      const { uri, backupCodes } = await setUp(rooms)
      // Each sign-in allows five codes, so without the lock, sixteen sign-ins could try all eighty.
      const waiting: string[] = []
      for (let i = 0; i < 20; i++) waiting.push((await signIn(rooms)).cookie)
      const right = [-1, 0, 1, 2].map((steps) => totp(uri, steps))
      const wrong = Array.from({ length: 90 }, (_, i) => String(100_000 + i)).filter((code) => !right.includes(code))
      const reasons = await Promise.all(
        wrong.slice(0, 80).map(async (code, i) => {
          const [door, cookie = ''] = [i % 2 === 0 ? rooms : other, waiting[i % 20]]
          const tried = i % 8 === 7 ? verifyBackup(door, cookie, code) : verify(door, cookie, code)
          return (await refusal(tried))['reason']
        }),
      )
      const looked = reasons.filter((reason) => reason === 'INVALID_CODE' || reason === 'INVALID_BACKUP_CODE').length
      assert.ok(looked > 0 && looked <= 10, `${looked} were looked at`)
      const late = await signIn(rooms)
      const locked = await refusal(verify(other, late.cookie, totp(uri)))
      assert.deepEqual([locked['code'], locked['reason']], ['RATE_LIMITED', 'ACCOUNT_TEMPORARILY_LOCKED'])
      assert.equal((await refusal(verifyBackup(rooms, late.cookie, backupCodes[0] ?? '')))['code'], 'RATE_LIMITED')
      rooms.clock.at += 900_001
      await verify(rooms, late.cookie, totp(uri))
      const row = await rooms.store.db.selectFrom('second_factors').selectAll().executeTakeFirstOrThrow()
      assert.deepEqual([row.failedVerificationCount, row.lockedUntil], [0, null])
    })

    test('no trusted device skips the second factor, and no undeclared field reaches the library', async () => {
      await using rooms = await openRooms(source)
      const { uri } = await setUp(rooms)
      const half = await signIn(rooms)
      for (const more of [{ trustDevice: true }, { disableSession: true }]) {
        assert.equal(await codeOf(verify(rooms, half.cookie, totp(uri), more)), 'INVALID_REQUEST')
      }
      for (const route of [
        'two-factor/send-otp',
        'two-factor/verify-otp',
        'two-factor/view-backup-codes',
        'totp/generate',
      ]) {
        assert.equal(await codeOf(auth(rooms, `POST ${route}`, {}, { cookie: half.cookie })), 'NOT_FOUND', route)
      }
    })

    test('a password reset does not skip the second factor, and ends sign-ins that wait for a code', async () => {
      await using smtp = await startSmtp()
      await using rooms = await openRooms(source, { SMTP_URL: smtp.url })
      await auth(rooms, 'POST sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
      await auth(rooms, 'POST verify-email', { token: tokenIn(await smtp.next(EMAIL)), password: PASSWORD })
      const { cookie } = await signIn(rooms)
      const { json } = await auth(rooms, 'POST two-factor/enable', { password: PASSWORD }, { cookie })
      await verify(rooms, cookie, totp(json.totpURI))
      const waiting = await signIn(rooms)
      await auth(rooms, 'POST request-password-reset', { email: EMAIL })
      const newPassword = 'another long password'
      const token = tokenIn(await smtp.next(EMAIL, LINK))
      assert.equal((await auth(rooms, 'POST reset-password/preview', { token })).json.secondFactor, true)
      const reset = await auth(rooms, 'POST reset-password', { token, newPassword })
      assert.deepEqual([reset.json.ended.secondFactor, reset.json.kept.secondFactor], [false, true])
      const late = await refusal(verify(rooms, waiting.cookie, totp(json.totpURI, 1)))
      assert.equal(late['reason'], 'INVALID_TWO_FACTOR_COOKIE')
      const half = await signIn(rooms, newPassword)
      assert.equal(half.json.twoFactorRedirect, true)
      assert.equal(await codeOf(tokenOf(rooms, half.cookie)), 'UNAUTHENTICATED')
      await verify(rooms, half.cookie, totp(json.totpURI, 1))
    })

    test('a password reset ends the second factor only with a valid code', async () => {
      await using smtp = await startSmtp()
      await using rooms = await openRooms(source, { SMTP_URL: smtp.url })
      await auth(rooms, 'POST sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
      await auth(rooms, 'POST verify-email', { token: tokenIn(await smtp.next(EMAIL)), password: PASSWORD })
      const { cookie } = await signIn(rooms)
      const { json } = await auth(rooms, 'POST two-factor/enable', { password: PASSWORD }, { cookie })
      await verify(rooms, cookie, totp(json.totpURI, -1))
      const [code, later, backup] = [totp(json.totpURI), totp(json.totpURI, 1), json.backupCodes[0]]
      const ask = async () => {
        await auth(rooms, 'POST request-password-reset', { email: EMAIL })
        return tokenIn(await smtp.next(EMAIL, LINK))
      }
      const reset = (token: string, more: object) =>
        auth(rooms, 'POST reset-password', { token, newPassword: PASSWORD, ...more })
      const token = await ask()
      for (const wrong of ['000000', totp(json.totpURI, -1), 'aaaaa-bbbbb', '']) {
        const told = await refusal(reset(token, { code: wrong }))
        assert.ok(wrong === '' ? told['code'] === 'INVALID_REQUEST' : told['reason'] === 'INVALID_CODE', wrong)
      }
      // This request is refused for another reason, so it does not use up the code.
      assert.equal(
        await codeOf(reset(token, { code, keep: { keyIds: ['00000000-0000-4000-8000-000000000000'] } })),
        'INVALID_REQUEST',
      )
      const kept = await reset(token, { code, keep: { secondFactor: true } })
      assert.equal(kept.json.kept.secondFactor, true)
      await verify(rooms, (await signIn(rooms)).cookie, code)
      const guessed = await ask()
      for (let i = 0; i < 10; i++) await codeOf(reset(guessed, { code: `${100_000 + i}` }))
      assert.equal(await codeOf(reset(guessed, { code: later })), 'RATE_LIMITED')
      await verify(rooms, (await signIn(rooms)).cookie, later)
      rooms.clock.at += 900_000
      const ended = await reset(guessed, { code: backup })
      assert.equal(ended.json.ended.secondFactor, true)
      await tokenOf(rooms, (await signIn(rooms)).cookie)
    })

    test('the code that turns the second factor on does not sign in', async () => {
      await using rooms = await openRooms(source)
      const { cookie } = await auth(rooms, 'POST sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
      const { json } = await auth(rooms, 'POST two-factor/enable', { password: PASSWORD }, { cookie })
      const [code, next] = [totp(json.totpURI), totp(json.totpURI, 1)]
      const on = await verify(rooms, cookie, code)
      const half = await signIn(rooms)
      assert.equal((await refusal(verify(rooms, half.cookie, code)))['reason'], 'INVALID_CODE')
      await verify(rooms, on.cookie, next)
      assert.equal((await refusal(verify(rooms, on.cookie, next)))['reason'], 'INVALID_CODE')
      assert.equal((await refusal(verify(rooms, (await signIn(rooms)).cookie, next)))['reason'], 'INVALID_CODE')
      await tokenOf(rooms, on.cookie)
    })

    test('the password alone cannot end the second factor, show its secret or create backup codes', async () => {
      await using rooms = await openRooms(source)
      const { uri, backupCodes, cookie } = await setUp(rooms)
      const [code, later] = [totp(uri), totp(uri, 1)]
      const ask = (path: string, body: object) => auth(rooms, `POST two-factor/${path}`, body, { cookie })
      for (const path of ['disable', 'get-totp-uri', 'generate-backup-codes']) {
        const { code: told, details } = await refusal(ask(path, { password: PASSWORD }))
        assert.deepEqual([told, String(details).slice(0, 5)], ['INVALID_REQUEST', 'code:'], path)
        const wrong = await refusal(ask(path, { password: PASSWORD, code: '000000' }))
        assert.deepEqual([wrong['code'], wrong['reason']], ['UNAUTHENTICATED', 'INVALID_CODE'], path)
        const guess = await refusal(ask(path, { password: 'not it', code: backupCodes[0] }))
        assert.deepEqual([guess['code'], guess['reason']], ['INVALID_REQUEST', 'INVALID_PASSWORD'], path)
      }
      await ask('get-totp-uri', { password: PASSWORD, code: backupCodes[0] })
      const both = await Promise.allSettled(
        [1, 2].map(() => ask('get-totp-uri', { password: PASSWORD, code: backupCodes[1] })),
      )
      assert.deepEqual(both.map((each) => each.status).sort(), ['fulfilled', 'rejected'])
      const renewed = await ask('generate-backup-codes', { password: PASSWORD, code })
      assert.equal(renewed.json.backupCodes.length, 10)
      for (const used of [code, backupCodes[2]]) {
        assert.equal((await refusal(ask('disable', { password: PASSWORD, code: used })))['reason'], 'INVALID_CODE')
      }
      const off = await ask('disable', { password: PASSWORD, code: later })
      await tokenOf(rooms, off.cookie)
    })

    test('codes that are guessed in a session use up the limit of the session and do not lock sign-ins', async () => {
      await using rooms = await openRooms(source)
      const { uri, cookie } = await setUp(rooms)
      for (let i = 0; i < 10; i++) await codeOf(verify(rooms, cookie, `${100_000 + i}`))
      assert.equal(await codeOf(verify(rooms, cookie, totp(uri))), 'RATE_LIMITED')
      await verify(rooms, (await signIn(rooms)).cookie, totp(uri))
    })

    test('a stranger with the password cannot lock out a device that has passed the second factor', async () => {
      await using rooms = await openRooms(source)
      rooms.clock.at = Date.now()
      const { uri, cookie } = await setUp(rooms)
      const device = cookie
        .split('; ')
        .filter((each) => each.startsWith('vitrine.known_device='))
        .join('')
      assert.notEqual(device, '')
      for (let n = 0; n < 3; n++) {
        const half = await signIn(rooms)
        for (let i = 0; i < 5; i++) await codeOf(verify(rooms, half.cookie, `${n}${i}0000`))
      }
      // A device that knows only the password counts as a stranger.
      const stranger = await signIn(rooms)
      assert.equal(await codeOf(verify(rooms, stranger.cookie, totp(uri))), 'RATE_LIMITED')
      const waiting = async () => {
        const half = await auth(rooms, 'POST sign-in/email', { email: EMAIL, password: PASSWORD }, { cookie: device })
        return half.cookies.map((each) => each.split(';')[0]).join('; ')
      }
      const known = await waiting()
      assert.ok(known.includes(device), 'a password removed the mark of the second factor')
      await verify(rooms, known, totp(uri))
      for (let i = 0; i < 10; i++) await codeOf(verify(rooms, await waiting(), `${i}00000`))
      assert.equal(await codeOf(verify(rooms, await waiting(), totp(uri, 1))), 'RATE_LIMITED')
    })

    test('the second factor can be ended with password and code, and then the password alone signs in', async () => {
      await using rooms = await openRooms(source)
      const { uri, cookie } = await setUp(rooms)
      const code = totp(uri)
      const disable = (password: string) => auth(rooms, 'POST two-factor/disable', { password, code }, { cookie })
      assert.equal(await codeOf(disable('not it')), 'INVALID_REQUEST')
      const off = await disable(PASSWORD)
      await tokenOf(rooms, off.cookie)
      await tokenOf(rooms, (await signIn(rooms)).cookie)
      assert.deepEqual(await rooms.store.db.selectFrom('second_factors').selectAll().execute(), [])
    })

    test('in a session, a password can be guessed at most ten times, even over https', async () => {
      for (const env of [{}, { VITRINE_PUBLIC_URL: 'https://vitrine.example.test' }]) await guessed(env)
    })

    async function guessed(env: Record<string, string>): Promise<void> {
      await using rooms = await openRooms(source, env)
      const { cookie } = await auth(rooms, 'POST sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
      const codes: unknown[] = []
      for (let i = 0; i < 11; i++) {
        // Spelling and other cookies make no difference.
        const spelt = cookie.replace(/session_token=(.)/, (_, letter: string) => {
          return `session_token${' '.repeat(i)}=%${letter.charCodeAt(0).toString(16)}`
        })
        const cookies = i % 2 === 0 ? spelt : `xvitrine.session_token=${i}.x; ${cookie}`
        codes.push(await codeOf(auth(rooms, 'POST two-factor/enable', { password: `no ${i}` }, { cookie: cookies })))
      }
      assert.deepEqual([codes[9], codes[10]], ['INVALID_REQUEST', 'RATE_LIMITED'])
    }

    test('a correct password in one session does not reset the limit of another session', async () => {
      await using rooms = await openRooms(source)
      const { cookie } = await auth(rooms, 'POST sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
      const eve = { name: 'Eve', email: 'eve@example.test', password: PASSWORD }
      const own = (await auth(rooms, 'POST sign-up/email', eve)).cookie
      const guess = () => codeOf(auth(rooms, 'POST two-factor/get-totp-uri', { password: 'no' }, { cookie }))
      for (let i = 0; i < 9; i++) await guess()
      const beside = `${own}; ${cookie.replaceAll('vitrine.', '__Secure-vitrine.')}`
      await auth(rooms, 'POST two-factor/enable', { password: PASSWORD }, { cookie: beside })
      await guess()
      assert.equal(await guess(), 'RATE_LIMITED')
    })
  })
}
