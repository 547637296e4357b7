import assert from 'node:assert/strict'
import { test } from 'node:test'
import { callOf, openRooms, someDatasource, someone } from '../../test/support/people.ts'
import { DIALECTS, storeSource } from '../../test/support/stores.ts'
import { asId, type TeamId } from '../ids.ts'
import { reachedBy, reachedIdsOf } from './team-counts.ts'
import { createTeam } from './teams.ts'

const MODES = [{ minRole: 'OWNER' }, { minRole: 'ADMIN' }, { minRole: 'MEMBER' }, { accessMode: 'EXPLICIT' }] as const

for (const dialect of DIALECTS) {
  test(`on ${dialect}, of the requested datasources exactly those are found that the account can reach`, async () => {
    await using source = await storeSource(dialect)
    await using rooms = await openRooms(source)
    const owner = callOf(rooms, (await someone(rooms, 'owner@example.test')).caller.accountId)
    const { accountId } = (await someone(rooms, 'ada@example.test')).caller
    const at = new Date(rooms.now()).toISOString()
    for (const role of ['OWNER', 'ADMIN', 'MEMBER'] as const) {
      for (const status of ['ACTIVE', 'INVITED'] as const) {
        const teamId = asId<TeamId>((await createTeam(rooms, owner, { name: `${role} ${status}` })).id)
        const member = { team_id: teamId, account_id: accountId, role, status }
        await rooms.store.write((tx) =>
          tx
            .insertInto('memberships')
            .values({ ...member, created_at: at })
            .execute(),
        )
        const ids = []
        for (const mode of MODES) ids.push(await someDatasource(rooms, teamId, mode))
        const listed = await someDatasource(rooms, teamId, { accessMode: 'EXPLICIT' })
        const unasked = await someDatasource(rooms, teamId, { minRole: 'MEMBER' })
        await rooms.store.write((tx) =>
          tx.insertInto('access_entries').values({ datasource_id: listed, account_id: accountId }).execute(),
        )
        ids.push(listed)
        const reached = await reachedIdsOf(rooms.store.db, { teamId, accountId, role, status })
        assert.equal(reached.has(unasked), status === 'ACTIVE')
        assert.deepEqual(
          await reachedBy(rooms.store.db, accountId, [...ids, 'none']),
          reached.intersection(new Set(ids)),
        )
      }
    }
    const other = await someDatasource(rooms, (await createTeam(rooms, owner, { name: 'Other' })).id)
    assert.deepEqual(await reachedBy(rooms.store.db, accountId, [other]), new Set())
    assert.deepEqual(await reachedBy(rooms.store.db, accountId, []), new Set())
  })
}
