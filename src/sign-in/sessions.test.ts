import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { auth, openRooms, PASSWORD, type Rooms } from '../../test/support/people.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { until } from '../../test/support/until.ts'
import { newId, type AccountId, type SessionId } from '../ids.ts'
import { storedTime } from '../store/better-auth-times.ts'
import { SESSIONS_MAX } from './sessions.ts'

const EMAIL = 'ada@example.test'
const DAY_MS = 86_400_000

for (const dialect of DIALECTS) {
  describe(`sessions on ${dialect}`, () => {
    let source: StoreSource
    before(async () => {
      source = await storeSource(dialect)
    })
    after(() => source[Symbol.asyncDispose]())

    const signUp = async (rooms: Rooms, email = EMAIL): Promise<AccountId> =>
      (await auth(rooms, 'POST sign-up/email', { name: 'Ada', email, password: PASSWORD })).json.user.id
    const signIn = (rooms: Rooms) => auth(rooms, 'POST sign-in/email', { email: EMAIL, password: PASSWORD })
    const tokenOf = async (rooms: Rooms, cookie: string): Promise<string> =>
      (await auth(rooms, 'GET token', undefined, { cookie })).json.token
    const isAlive = async (rooms: Rooms, token: string) => {
      const caller = await rooms.authenticator.authenticate(`Bearer ${token}`).catch(() => null)
      return caller !== null
    }
    /** Adds sessions that began a day ago and end after `lastsMs`. */
    const addSessions = async (rooms: Rooms, userId: AccountId, count: number, lastsMs: number) => {
      const began = Date.now() - DAY_MS
      const [createdAt, expiresAt] = [storedTime(dialect, began), storedTime(dialect, began + lastsMs)]
      const of = { userId, ipAddress: null, userAgent: null, createdAt, updatedAt: createdAt, expiresAt }
      const rows = Array.from({ length: count }, () => ({ id: newId<SessionId>(), token: newId(), ...of }))
      await rooms.store.write((tx) => tx.insertInto('sessions').values(rows).execute())
    }
    const count = async (rooms: Rooms, userId: AccountId) =>
      (await rooms.store.db.selectFrom('sessions').select('id').where('userId', '=', userId).execute()).length

    test('all other sessions end, and all sessions are listed, if the account has many', async () => {
      await using rooms = await openRooms(source)
      const userId = await signUp(rooms)
      const thief = await tokenOf(rooms, (await signIn(rooms)).cookie)
      const { cookie } = await signIn(rooms)
      const own = await tokenOf(rooms, cookie)
      // These sessions are older than the sessions of the thief and the owner.
      await addSessions(rooms, userId, 150, 7 * DAY_MS)
      await addSessions(rooms, userId, 150, 1)
      const list: { current?: true; token?: string }[] = (await auth(rooms, 'GET list-sessions', undefined, { cookie }))
        .json
      // The session of the sign-up, both sign-ins, and the sessions that have not expired.
      assert.equal(list.length, 153)
      assert.equal(list.filter(({ current }) => current).length, 1)
      assert.ok(list.every(({ token }) => token === undefined))
      assert.deepEqual([await isAlive(rooms, thief), await isAlive(rooms, own)], [true, true])
      const answer = await auth(rooms, 'POST revoke-other-sessions', {}, { cookie })
      assert.deepEqual(answer.json, { status: true })
      assert.deepEqual([await isAlive(rooms, thief), await isAlive(rooms, own)], [false, true])
      assert.equal(await count(rooms, userId), 1)
    })

    test('a sign-in ends the oldest sessions of the account beyond the maximum', async () => {
      await using rooms = await openRooms(source)
      const userId = await signUp(rooms)
      const other = await signUp(rooms, 'bo@example.test')
      await addSessions(rooms, other, SESSIONS_MAX + 20, 7 * DAY_MS)
      await addSessions(rooms, userId, 1_200, 7 * DAY_MS)
      const [older, newer] = [await signIn(rooms), await signIn(rooms)]
      const tokens = [await tokenOf(rooms, older.cookie), await tokenOf(rooms, newer.cookie)]
      assert.deepEqual(await Promise.all(tokens.map((token) => isAlive(rooms, token))), [true, true])
      assert.equal(await count(rooms, userId), SESSIONS_MAX)
      assert.equal(await count(rooms, other), SESSIONS_MAX + 21)
    })

    test('expired sessions of all accounts are deleted after a sign-in, at most once an hour', async () => {
      await using rooms = await openRooms(source)
      const other = await signUp(rooms, 'bo@example.test')
      await signUp(rooms)
      await addSessions(rooms, other, 10, 1)
      await addSessions(rooms, other, 10, 7 * DAY_MS)
      await signIn(rooms)
      assert.equal(await count(rooms, other), 21)
      rooms.clock.at += 3_600_000
      await signIn(rooms)
      await until('the deletion', async () => (await count(rooms, other)) === 11)
    })
  })
}
