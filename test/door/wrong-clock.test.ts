// A clock jumps 40 days ahead, and later back. In between, sessions and keys count as expired. Afterwards they work
// again, and every audit row is still there.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import { startApp } from '../support/app.ts'
import { addMember, addTeam, openRooms, sessionCall } from '../support/connected.ts'

const DAY = 86_400_000

describe('a clock that jumps 40 days ahead', () => {
  const start = Date.now()
  // Parts of the service keep a reference to Date.now, so the clock is replaced before the service starts.
  beforeEach(() => mock.timers.enable({ apis: ['Date'], now: start }))
  afterEach(() => mock.timers.reset())
  const jump = () => mock.timers.setTime(start + 40 * DAY)
  const correct = () => mock.timers.setTime(start)

  test('a session and a key that expired by a wrong clock work again when the clock is right', async () => {
    await using app = await startApp()
    const ada = await app.person()
    const expiresAt = new Date(Date.now() + 30 * DAY).toISOString()
    const key = await app.key(ada, { expiresAt })
    const session = () => app.ask('GET', '/auth/get-session', { headers: { cookie: ada.cookie } })
    const byKey = async () => (await app.ask('GET', '/users/me', { token: key })).status
    assert.equal((await session()).json.user.id, ada.id)
    assert.equal(await byKey(), 200)
    jump()
    for (let n = 0; n < 2; n++) {
      assert.equal((await session()).json, null)
      assert.equal((await app.ask('GET', '/auth/token', { headers: { cookie: ada.cookie } })).status, 401)
      assert.equal(await byKey(), 401)
    }
    correct()
    assert.equal((await session()).json.user.id, ada.id)
    assert.equal(await byKey(), 200)
    await app.signIn(ada.email)
  })

  test('a wrong clock removes no audit row', async () => {
    await using rooms = await openRooms()
    const teamId = await addTeam(rooms, { auditRetentionDays: 30 })
    const owner = await addMember(rooms, teamId, 'OWNER')
    rooms.audit.record(sessionCall(owner.accountId, 'runQuery'), { teamId, outcome: 'ANSWERED', rowCount: 7 })
    await rooms.audit.flush()
    const rows = async () => (await rooms.audit.page(teamId, { limit: 9 })).items.map(({ rowCount }) => rowCount)
    jump()
    await rooms.audit.prune()
    correct()
    assert.deepEqual(await rows(), [7])
    // The correction is a jump too, so prune again after it.
    await rooms.audit.prune()
    assert.deepEqual(await rows(), [7])
  })
})
