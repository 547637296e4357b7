import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { startSmtp, type TestSmtp } from '../../test/support/mail.ts'
import { auth, openRooms, PASSWORD, someone } from '../../test/support/people.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { createKey } from '../auth/api-keys.ts'
import { newId, type AccountId } from '../ids.ts'
import { storedFlag } from '../store/better-auth-booleans.ts'
import { storedTime } from '../store/better-auth-times.ts'
import { createTeam } from '../teams/teams.ts'
import { openUnverifiedAccounts } from './unverified-accounts.ts'

const DAY = 86_400_000

for (const dialect of DIALECTS) {
  describe(`deleting unverified accounts on ${dialect}`, () => {
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

    test('unverified accounts are deleted after seven days, with their sessions, keys and links, and each deletion is audited', async () => {
      await using rooms = await openRooms(source, env)
      await auth(rooms, 'POST sign-up/email', { name: 'Eve', email: 'eve@example.test', password: PASSWORD })
      await auth(rooms, 'POST request-password-reset', { email: 'eve@example.test' })
      const call = await someone(rooms, 'key@example.test')
      await createKey(rooms, call, { name: 'k', scopes: ['profile'] })
      await someone(rooms, 'proven@example.test', { verified: true })
      await createTeam(rooms, await someone(rooms, 'early@example.test'), { name: 'T' })
      const { db } = rooms.store
      const emails = async () =>
        (await db.selectFrom('accounts').select('email').orderBy('email').execute()).map(({ email }) => email)
      const all = await emails()
      assert.equal((await db.selectFrom('verifications').select('id').execute()).length, 1)
      rooms.clock.at += 7 * DAY - 60_000
      await someone(rooms, 'new@example.test')
      await rooms.unverified.remove()
      assert.deepEqual(await emails(), [...all, 'new@example.test'].sort())
      rooms.clock.at += 120_000
      await Promise.all([rooms.unverified.remove(), rooms.unverified.remove()])
      assert.deepEqual(await emails(), ['early@example.test', 'new@example.test', 'proven@example.test'])
      assert.deepEqual(await db.selectFrom('verifications').select('id').execute(), [])
      assert.deepEqual(await db.selectFrom('api_keys').select('id').execute(), [])
      assert.equal((await db.selectFrom('sessions').select('id').execute()).length, 3)
      await rooms.audit.flush()
      const rows = await db
        .selectFrom('audit')
        .select(['account_id', 'team_id', 'outcome', 'detail'])
        .where('action', '=', 'deleteUnverifiedAccount')
        .execute()
      assert.deepEqual(
        rows.map(({ outcome, team_id }) => [outcome, team_id]),
        [
          ['ANSWERED', null],
          ['ANSWERED', null],
        ],
      )
      assert.ok(rows.some(({ account_id }) => account_id === call.caller.accountId))
      assert.deepEqual(
        rows.filter(({ detail }) => detail?.includes('@')),
        [],
      )
    })

    test('other requests run after every few deletions', async () => {
      await using rooms = await openRooms(source)
      const createdAt = storedTime(dialect, rooms.now() - 8 * DAY)
      const emailVerified = storedFlag(dialect, false)
      const rows = Array.from({ length: 120 }, (_, n) => {
        const dates = { createdAt, updatedAt: createdAt }
        return { id: newId<AccountId>(), name: 'n', email: `n${n}@example.test`, emailVerified, image: null, ...dates }
      })
      await rooms.store.write((tx) => tx.insertInto('accounts').values(rows).execute())
      let since = 0
      let most = 0
      const change: typeof rooms.audit.change = async (...what) => {
        most = Math.max(most, ++since)
        await rooms.audit.change(...what)
      }
      let isOver = false
      const otherWork = (async () => {
        for (; !isOver; since = 0) await setImmediate()
      })()
      const mail = { isOn: true }
      const log = { warn: () => undefined, error: () => undefined }
      await using unverified = openUnverifiedAccounts({
        ...rooms,
        mail,
        log,
        audit: { change },
        clock: { reason: () => null },
      })
      await unverified.remove()
      isOver = true
      await otherWork
      assert.deepEqual(await rooms.store.db.selectFrom('accounts').select('id').execute(), [])
      assert.ok(most > 0 && most <= 10, `${most} accounts were deleted at once`)
    })

    test('unverified accounts stay if mail is off, and while the clock may be wrong', async () => {
      await using rooms = await openRooms(source)
      await someone(rooms, 'ada@example.test')
      rooms.clock.at += 8 * DAY
      await rooms.unverified.remove()
      const mail = { isOn: true }
      const told: string[] = []
      const log = { warn: (_: object, message: string) => void told.push(message), error: () => undefined }
      const clock = { reason: () => 'the clock jumped by 8.0 days' }
      await using doubted = openUnverifiedAccounts({ ...rooms, mail, log, clock })
      await doubted.remove()
      const accounts = () => rooms.store.db.selectFrom('accounts').select('id').execute()
      assert.deepEqual([(await accounts()).length, told.length], [1, 1])
      await using trusted = openUnverifiedAccounts({ ...rooms, mail, log, clock: { reason: () => null } })
      await trusted.remove()
      assert.deepEqual(await accounts(), [])
    })
  })
}
