import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startSmtp } from '../../test/support/mail.ts'
import { openRooms, someone, type Rooms } from '../../test/support/people.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { openStore, type Store } from '../store/open.ts'
import { createTeam } from '../teams/teams.ts'
import { listTeamKeys } from '../teams/team-keys.ts'
import { createKey, listKeys, revokeKey, rotateKey } from './api-keys.ts'
import { authenticator } from './authenticate.ts'
import { openKeyWarnings } from './key-expiry-warnings.ts'

const DAY = 86_400_000
const WARNED = 'an API key expires within a week'

for (const dialect of DIALECTS) {
  describe(`expiring keys on ${dialect}`, () => {
    let source: StoreSource
    before(async () => {
      source = await storeSource(dialect)
    })
    after(() => source[Symbol.asyncDispose]())

    const warnings = (rooms: Rooms, store: Store = rooms.store) => {
      const keep = (detail: object, message: string) => void rooms.logged.push({ ...detail, message })
      return openKeyWarnings({ ...rooms, store, log: { warn: keep, error: keep } })
    }
    /** Without mails about new keys, and without the warnings that openRooms() starts. */
    const quiet = ({ notices: _notices, keyWarnings: _warnings, ...rooms }: Rooms) => rooms
    const inDays = (rooms: Rooms, days: number) => new Date(rooms.now() + days * DAY).toISOString()
    const warned = (rooms: Rooms) => rooms.logged.filter((line) => line['message'] === WARNED)

    test('lists mark a key as expiring from seven days before its expiry, for its owner and for the team', async () => {
      await using rooms = await openRooms(source)
      const call = await someone(rooms, 'ada@example.test')
      const team = await createTeam(rooms, call, { name: 'T' })
      const order = { scopes: ['profile'] } as const
      const made = await createKey(rooms, call, { ...order, name: 'later', expiresAt: inDays(rooms, 8) })
      rooms.clock.at++
      await createKey(rooms, call, { ...order, name: 'never' })
      rooms.clock.at++
      const soon = await createKey(rooms, call, { ...order, name: 'soon', expiresAt: inDays(rooms, 6) })
      assert.deepEqual([made.expiring, soon.expiring], [false, true])
      const own = async () => (await listKeys(rooms, call)).map((key) => [key.name, key.expiring])
      assert.deepEqual(await own(), [
        ['later', false],
        ['never', false],
        ['soon', true],
      ])
      const membership = {
        teamId: team.id as never,
        accountId: call.caller.accountId,
        role: 'OWNER',
        status: 'ACTIVE',
      } as const
      const ofTeam = async () => (await listTeamKeys(rooms, membership)).map((key) => key.expiring)
      assert.deepEqual(await ofTeam(), [false, false, true])
      rooms.clock.at += DAY
      assert.deepEqual((await own())[0], ['later', true])
      assert.deepEqual(await ofTeam(), [true, false, true])
    })

    test('an expiring key is reported once, in the log and by mail to a verified address', async () => {
      await using smtp = await startSmtp()
      await using rooms = await openRooms(source, { SMTP_URL: smtp.url })
      const [ada, bo] = [
        await someone(rooms, 'ada@example.test', { verified: true }),
        await someone(rooms, 'bo@example.test'),
      ]
      const order = { name: 'my agent', scopes: ['profile'] as const }
      const key = await createKey(quiet(rooms), ada, { ...order, expiresAt: inDays(rooms, 10) })
      const ofBo = await createKey(quiet(rooms), bo, { ...order, expiresAt: inDays(rooms, 10) })
      const revoked = await createKey(quiet(rooms), ada, { ...order, expiresAt: inDays(rooms, 10) })
      await revokeKey(rooms, ada, revoked.id as never)
      await createKey(quiet(rooms), ada, { ...order, expiresAt: inDays(rooms, 1) })
      await using first = warnings(rooms)
      rooms.clock.at += 2 * DAY
      await first.tell()
      assert.deepEqual(warned(rooms), [], 'too early, or too late')
      rooms.clock.at += DAY + 1
      await first.tell()
      await first.tell()
      // Like another process after a restart.
      await using second = warnings(rooms)
      await second.tell()
      assert.deepEqual(
        warned(rooms)
          .map((line) => line['keyId'])
          .sort(),
        [key.id, ofBo.id].sort(),
      )
      const { text } = await smtp.next('ada@example.test')
      assert.match(text, /Your API key “my agent” \(….{4}\) at http:\/\/127\.0\.0\.1:3000 expires at \d{4}-/)
      assert.ok(!text.includes(key.key))
      await rooms.mail[Symbol.asyncDispose]()
      assert.equal(smtp.received.length, 1)
    })

    test('a key that is created to expire within a week is reported immediately, but not a key that was rotated', async () => {
      await using rooms = await openRooms(source)
      const call = await someone(rooms, 'ada@example.test')
      await using telling = warnings(rooms)
      let soon = 0
      const deps = { ...rooms, keyWarnings: { soon: () => void soon++ } }
      const old = await createKey(deps, call, { name: 'k', scopes: ['profile'] })
      assert.equal(soon, 0)
      await rotateKey(deps, call, old.id as never, { graceSeconds: 3600 })
      await telling.tell()
      assert.deepEqual([soon, warned(rooms)], [0, []])
      await createKey(deps, call, { name: 'k', scopes: ['profile'], expiresAt: inDays(rooms, 1) })
      assert.equal(soon, 1)
      await telling.tell()
      assert.equal(warned(rooms).length, 1)
    })

    if (dialect === 'postgres') {
      test('of two processes, only one reports an expiring key, and only one stores the last use in a minute', async () => {
        await using rooms = await openRooms(source)
        const call = await someone(rooms, 'ada@example.test')
        const order = { scopes: ['profile'] as const, expiresAt: inDays(rooms, 3) }
        const keys = []
        for (let i = 0; i < 10; i++) keys.push(await createKey(quiet(rooms), call, { ...order, name: `k${i}` }))
        {
          await using other = await openStore(rooms.config)
          await using one = warnings(rooms)
          await using two = warnings(rooms, other)
          await Promise.all([one.tell(), two.tell()])
        }
        assert.equal(warned(rooms).length, 10)

        const started = new Date(rooms.now()).toISOString()
        const [key] = keys
        await authenticator(rooms).authenticate(`Bearer ${key?.key}`)
        const used = async () => (await listKeys(rooms, call)).find((each) => each.id === key?.id)?.lastUsedAt
        for (let i = 0; (await used()) === null && i < 500; i++) await new Promise(setImmediate)
        rooms.clock.at += 30_000
        {
          // Closing the store waits for background writes.
          await using other = await openStore(rooms.config)
          await authenticator({ store: other, now: rooms.now, origin: rooms.origin }).authenticate(`Bearer ${key?.key}`)
        }
        assert.equal(await used(), started)
      })
    }
  })
}
