// Tests what an account in hundreds of teams costs other requests.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRooms, someDatasource, someone } from '../../test/support/people.ts'
import { DIALECTS, storeSource } from '../../test/support/stores.ts'
import { turnsDuring } from '../../test/support/turns-during.ts'
import { asId, newId, type TeamId } from '../ids.ts'
import { requireMembership } from './require-membership.ts'
import { createTeam } from './teams.ts'

const COUNT = 900

test('other requests run while the teams of an account are read', async () => {
  await using source = await storeSource('sqlite')
  await using rooms = await openRooms(source)
  const call = await someone(rooms, 'ada@example.test')
  const created_at = '2026-01-01T00:00:00.000Z'
  const teams = Array.from({ length: COUNT }, () => newId<TeamId>())
  const own = { account_id: call.caller.accountId, role: 'ADMIN', status: 'ACTIVE', created_at } as const
  await rooms.store.write(async (tx) => {
    for (const id of teams) {
      await tx.insertInto('teams').values({ id, name: 'T', slug: id, settings: '{}', created_at }).execute()
      await tx
        .insertInto('memberships')
        .values({ ...own, team_id: id })
        .execute()
    }
  })
  let found: readonly unknown[] = []
  const turns = await turnsDuring(async () => void (found = await rooms.membershipsOf(call)))
  assert.equal(found.length, COUNT)
  assert.ok(turns > 0, `${turns} turns`)
})

for (const dialect of DIALECTS) {
  test(`on ${dialect}, the datasources that an account reaches are found without their rows`, async () => {
    await using source = await storeSource(dialect)
    await using rooms = await openRooms(source)
    const call = await someone(rooms, 'ada@example.test')
    const teamId = asId<TeamId>((await createTeam(rooms, call, { name: 'Shop' })).id)
    const id = await someDatasource(rooms, teamId)
    const membership = await requireMembership(rooms, call, teamId)
    assert.deepEqual(await rooms.reachableIds(call, membership), [id])
    assert.deepEqual(await rooms.reachableIds(call, { ...membership, role: 'MEMBER', status: 'INVITED' }), [])
    assert.equal(rooms.store.known(`datasources of ${teamId}`), undefined)
  })
}
