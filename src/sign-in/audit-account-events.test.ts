import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { findingsOf } from '../../test/support/audited.ts'
import { startSmtp, tokenIn } from '../../test/support/mail.ts'
import { auth, codeOf, openRooms, PASSWORD, type Rooms } from '../../test/support/people.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { totp } from '../../test/support/totp.ts'
import { readDetail } from '../audit/row-detail.ts'
import { AppError } from '../errors.ts'
import { SIGN_IN } from './allowed-paths.ts'
import { resetChanges } from './audited-account-changes.ts'
import { openTrail } from './audit-account-events.ts'

const EMAIL = 'ada@example.test'
const OTHER = 'another long password'
const headers = { 'user-agent': 'curl/8 ü' }

/** Returns the secret of a session cookie. */
const secretOf = (cookie: string) => /session_token=([^;.]+)/.exec(cookie)?.[1] ?? assert.fail(cookie)

for (const dialect of DIALECTS) {
  describe(`account events on ${dialect}`, () => {
    let source: StoreSource
    before(async () => {
      source = await storeSource(dialect)
    })
    after(() => source[Symbol.asyncDispose]())

    const rowsOf = (rooms: Rooms) =>
      rooms.store.db.selectFrom('audit').selectAll().orderBy('at').orderBy('id').execute()
    const recorded = async (rooms: Rooms) =>
      (await rowsOf(rooms)).map((row) => [row.action, row.outcome, ...(row.code === null ? [] : [row.code])].join(' '))
    /** Returns the refusals with their counts. Adds up the rows if a minute ends during the test. */
    const refused = async (rooms: Rooms) => {
      const times = new Map<string, number>()
      for (const row of await rowsOf(rooms)) {
        if (row.outcome === 'ANSWERED') continue
        assert.deepEqual([row.outcome, row.team_id], ['DENIED', null])
        const what = `${row.action} ${row.code}`
        times.set(what, (times.get(what) ?? 0) + row.times)
      }
      return [...times].map(([what, count]) => `${what} ${count}`)
    }
    const signIn = (rooms: Rooms, password = PASSWORD) =>
      auth(rooms, 'POST sign-in/email', { email: EMAIL, password }, { headers })

    test('errors with a status of 500 or more have the outcome FAILED, and other errors have DENIED', async () => {
      await using rooms = await openRooms(source)
      await auth(rooms, 'POST sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
      const trail = openTrail(rooms)
      const request = new Request('http://127.0.0.1/auth/sign-in/email', { headers })
      const identity = { signedIn: null, sessionId: null, waiting: null }
      for (const code of ['OVERLOADED', 'UNAUTHENTICATED', 'RATE_LIMITED'] as const) {
        await trail.refused({ name: SIGN_IN, request, email: EMAIL, identity }, new AppError(code, 'no'))
      }
      await rooms.audit.flush()
      assert.deepEqual((await recorded(rooms)).slice(1).sort(), [
        'signIn DENIED RATE_LIMITED',
        'signIn DENIED UNAUTHENTICATED',
        'signIn FAILED OVERLOADED',
      ])
    })

    test('account events are in the audit before a change is answered, and contain no secrets', async () => {
      await using rooms = await openRooms(source)
      const signedUp = await auth(rooms, 'POST sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
      const { cookie } = signedUp
      assert.deepEqual(await recorded(rooms), ['signUp ANSWERED'])
      const one = await signIn(rooms)
      const two = await auth(rooms, 'POST sign-in/email', { email: EMAIL, password: PASSWORD })
      const { session } = (await auth(rooms, 'GET get-session', undefined, { cookie: two.cookie })).json
      await auth(rooms, 'POST revoke-session', { id: session.id }, { cookie })
      await auth(rooms, 'POST revoke-other-sessions', {}, { cookie })
      const change = { currentPassword: PASSWORD, newPassword: OTHER }
      const changed = await auth(rooms, 'POST change-password', change, { cookie })
      const begun = await auth(rooms, 'POST two-factor/enable', { password: OTHER }, { cookie: changed.cookie })
      const [code, next, backup] = [totp(begun.json.totpURI), totp(begun.json.totpURI, 1), begun.json.backupCodes[0]]
      const on = await auth(rooms, 'POST two-factor/verify-totp', { code }, { cookie: changed.cookie })
      await auth(rooms, 'POST two-factor/get-totp-uri', { password: OTHER, code: backup }, { cookie: on.cookie })
      const renewed = await auth(
        rooms,
        'POST two-factor/generate-backup-codes',
        { password: OTHER, code: next },
        { cookie: on.cookie },
      )
      const end = { password: OTHER, code: renewed.json.backupCodes[0] }
      const off = await auth(rooms, 'POST two-factor/disable', end, { cookie: on.cookie })
      await auth(rooms, 'POST revoke-sessions', {}, { cookie: off.cookie })
      assert.deepEqual(await recorded(rooms), [
        'signUp ANSWERED',
        'signIn ANSWERED',
        'signIn ANSWERED',
        'revokeSession ANSWERED',
        'revokeOtherSessions ANSWERED',
        'changePassword ANSWERED',
        'beginSecondFactor ANSWERED',
        'confirmSecondFactor ANSWERED',
        'showSecondFactor ANSWERED',
        'renewBackupCodes ANSWERED',
        'endSecondFactor ANSWERED',
        'revokeSessions ANSWERED',
      ])
      const out = await auth(rooms, 'POST sign-in/email', { email: EMAIL, password: OTHER })
      await auth(rooms, 'POST sign-out', {}, { cookie: out.cookie })
      await auth(rooms, 'POST sign-out', {}, { cookie: out.cookie })
      await auth(rooms, 'POST sign-out', {})
      await rooms.audit.flush()
      assert.deepEqual((await recorded(rooms)).slice(-2), ['signIn ANSWERED', 'signOut ANSWERED'])
      const rows = await rowsOf(rooms)
      for (const row of rows) {
        assert.deepEqual([row.team_id, row.account_id, row.via], [null, signedUp.json.user.id, 'SESSION'])
      }
      assert.equal(rows[1]?.client, 'curl/8 ?')
      const target = { kind: 'account', id: signedUp.json.user.id, name: 'Ada' }
      const details = rows.map(({ action, detail }) => ({ action, ...readDetail(detail) }))
      assert.ok(details.every(({ by }) => by === 'Ada'))
      for (const { target: named } of details) assert.deepEqual(named, target)
      assert.deepEqual(
        details.flatMap(({ action, changes }) => (changes === undefined ? [] : [[action, ...Object.keys(changes)]])),
        [
          ['signUp', 'password'],
          ['changePassword', 'password'],
          ['beginSecondFactor', 'secondFactor', 'backupCodes'],
          ['confirmSecondFactor', 'secondFactor'],
          ['renewBackupCodes', 'backupCodes'],
          ['endSecondFactor', 'secondFactor'],
        ],
      )
      const secrets = [
        EMAIL,
        PASSWORD,
        OTHER,
        code,
        secretOf(two.cookie),
        secretOf(one.cookie),
        ...renewed.json.backupCodes,
      ]
      for (const secret of secrets) assert.ok(!JSON.stringify(rows).includes(secret))
    })

    test("the audit's chain covers account events, so that a changed row is found", async () => {
      await using rooms = await openRooms(source)
      await auth(rooms, 'POST sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
      for (let i = 0; i < 3; i++) await codeOf(signIn(rooms, 'not it'))
      rooms.clock.at = Date.now()
      await rooms.audit.flush()
      const findings = async () =>
        (await findingsOf(rooms.store, rooms.secrets.derive('audit chain'))).map(({ kind }) => kind)
      assert.deepEqual(await findings(), [])
      for (const action of ['signUp', 'signIn']) {
        const set = (to: string) =>
          rooms.store.write((tx) => tx.updateTable('audit').set({ action: to }).where('action', '=', action).execute())
        await set('other')
        assert.equal((await findings()).length, 1, action)
        await rooms.store.write((tx) => tx.updateTable('audit').set({ action }).where('action', '=', 'other').execute())
      }
      assert.deepEqual(await findings(), [])
    })

    test('sign-ins with a code or a backup code are recorded, and refusals only if the account is known', async () => {
      await using rooms = await openRooms(source)
      rooms.clock.at = Math.floor(Date.now() / 60_000) * 60_000
      const { cookie } = await auth(rooms, 'POST sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
      const { json } = await auth(rooms, 'POST two-factor/enable', { password: PASSWORD }, { cookie })
      await auth(rooms, 'POST two-factor/verify-totp', { code: totp(json.totpURI) }, { cookie })
      const before = (await recorded(rooms)).length
      const half = await signIn(rooms)
      await auth(rooms, 'POST two-factor/verify-totp', { code: totp(json.totpURI, 1) }, { cookie: half.cookie })
      const other = await signIn(rooms)
      await auth(rooms, 'POST two-factor/verify-backup-code', { code: json.backupCodes[0] }, { cookie: other.cookie })
      await rooms.audit.flush()
      assert.deepEqual((await recorded(rooms)).slice(before), ['signIn ANSWERED', 'signIn ANSWERED'])

      const third = await signIn(rooms)
      for (let i = 0; i < 3; i++) {
        const wrong = auth(rooms, 'POST two-factor/verify-totp', { code: '000000' }, { cookie: third.cookie })
        assert.equal(await codeOf(wrong), 'UNAUTHENTICATED')
      }
      for (let i = 0; i < 12; i++) await codeOf(signIn(rooms, 'not it'))
      for (const email of ['nobody@example.test', 'eve@example.test']) {
        await codeOf(auth(rooms, 'POST sign-in/email', { email, password: PASSWORD }))
      }
      await codeOf(auth(rooms, 'POST change-password', { currentPassword: PASSWORD, newPassword: OTHER }))
      await codeOf(auth(rooms, 'POST verify-email', { token: 'x', password: PASSWORD }))
      await rooms.audit.flush()
      assert.deepEqual(await refused(rooms), ['signIn UNAUTHENTICATED 13', 'signIn RATE_LIMITED 2'])
    })

    test('a sign-out without a session causes no write', async () => {
      await using rooms = await openRooms(source)
      const { json } = await auth(rooms, 'POST sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
      const written = new Set<number>()
      // Waiting rows are written twice a second anyway, so try until a request finds a row that is still waiting.
      for (let i = 0; i < 20 && !written.has(0); i++) {
        await rooms.audit.flush()
        const before = (await rowsOf(rooms)).length
        const caller = { kind: 'session', accountId: json.user.id } as const
        rooms.audit.record({ action: 'signIn', caller }, { outcome: 'ANSWERED' })
        await auth(rooms, 'POST sign-out', {})
        written.add((await rowsOf(rooms)).length - before)
      }
      assert.ok(written.has(0))
    })

    test('refusals to strangers and to signed-in people are recorded with the action of their path', async () => {
      await using rooms = await openRooms(source)
      const { cookie } = await auth(rooms, 'POST sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
      await codeOf(signIn(rooms, 'not it'))
      const change = { currentPassword: 'not it', newPassword: OTHER }
      for (let i = 0; i < 2; i++) await codeOf(auth(rooms, 'POST change-password', change, { cookie }))
      await codeOf(auth(rooms, 'POST two-factor/disable', { password: 'not it' }, { cookie }))
      await rooms.audit.flush()
      assert.deepEqual(await refused(rooms), [
        'signIn UNAUTHENTICATED 1',
        'changePassword INVALID_REQUEST 2',
        'endSecondFactor INVALID_REQUEST 1',
      ])
    })

    test('a change by a link has one row, and a sign-up with a taken e-mail address has none', async () => {
      await using smtp = await startSmtp()
      await using rooms = await openRooms(source, { SMTP_URL: smtp.url })
      const signUp = () => auth(rooms, 'POST sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
      const { json } = await signUp()
      const proof = { token: tokenIn(await smtp.next(EMAIL)), password: PASSWORD }
      assert.equal(await codeOf(signIn(rooms)), 'SIGN_IN_REFUSED')
      await auth(rooms, 'POST verify-email', proof)
      await auth(rooms, 'POST verify-email', proof)
      await signUp()
      await smtp.next(EMAIL)
      await signIn(rooms)
      await auth(rooms, 'POST request-password-reset', { email: EMAIL })
      await auth(rooms, 'POST reset-password', { token: tokenIn(await smtp.next(EMAIL)), newPassword: OTHER })
      assert.deepEqual(
        (await recorded(rooms)).filter((row) => !row.startsWith('signIn')),
        ['signUp ANSWERED', 'verifyEmail ANSWERED', 'resetPassword ANSWERED'],
      )
      const rows = await rowsOf(rooms)
      assert.deepEqual(new Set(rows.map((row) => row.account_id)), new Set([json.user.id]))
      const reset = rows.find((row) => row.action === 'resetPassword')
      assert.deepEqual(readDetail(reset?.detail ?? null).changes, {
        password: { from: null, to: 'set' },
        sessions: { from: 1, to: 0 },
      })
    })

    test('the audit records what a password reset ended', () => {
      const changes = resetChanges({
        sessions: 0,
        keys: [{ name: 'CI' }],
        grants: [{ clientName: 'A' }],
        passkeys: [{ name: 'Laptop' }],
        providers: [{ name: 'GitHub' }],
        secondFactor: true,
      })
      const secondFactor = { from: 'on', to: 'off' }
      const ended = (name: string) => ({ added: [], removed: [name] })
      const ways = { passkeys: ended('Laptop'), providers: ended('GitHub') }
      assert.deepEqual(changes, { keys: ended('CI'), grants: ended('A'), ...ways, secondFactor })
    })
  })
}
