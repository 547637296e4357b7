import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRooms, someone } from '../../test/support/people.ts'
import { storeSource } from '../../test/support/stores.ts'
import { turnsDuring } from '../../test/support/turns-during.ts'
import { asId, newId, type ApiKeyId, type TeamId } from '../ids.ts'
import { requireMembership } from './require-membership.ts'
import { listKeys, type ShownKey } from '../auth/api-keys.ts'
import { listTeamKeys, type TeamKey } from './team-keys.ts'
import { createTeam } from './teams.ts'

test('other requests run while the keys of many members are listed, the oldest first', async () => {
  await using source = await storeSource('sqlite')
  await using rooms = await openRooms(source)
  const owner = await someone(rooms, 'owner@example.test')
  const teamId = asId<TeamId>((await createTeam(rooms, owner, { name: 'T' })).id)
  const unset = { last_used_at: null, expires_at: null, revoked_at: null, warned_at: null, last_client: null }
  const key = {
    ...{ name: 'k', hint: 'hint', scopes: '["data:read"]', team_ids: null, ended_team_ids: '[]', ...unset },
    ...{
      datasource_ids: JSON.stringify(Array.from({ length: 300 }, () => newId())),
      replaces: null,
      replaced_by: null,
    },
  }
  for (let n = 0; n < 30; n++) {
    const { caller } = await someone(rooms, `member-${n}@example.test`)
    const member = { team_id: teamId, account_id: caller.accountId, role: 'MEMBER', status: 'ACTIVE' } as const
    const keys = Array.from({ length: 100 }, (_, k) => {
      const created_at = new Date(k * 1_000).toISOString()
      return { ...key, id: newId<ApiKeyId>(), account_id: caller.accountId, hash: newId(), created_at }
    })
    await rooms.store.write(async (tx) => {
      await tx
        .insertInto('memberships')
        .values({ ...member, created_at: '2026-01-01T00:00:00.000Z' })
        .execute()
      await tx.insertInto('api_keys').values(keys).execute()
    })
  }
  const membership = await requireMembership(rooms, owner, teamId)
  let listed: readonly TeamKey[] = []
  const turns = await turnsDuring(async () => void (listed = await listTeamKeys(rooms, membership)))
  const times = listed.map((each) => each.createdAt)
  assert.equal(times.length, 3_000)
  assert.deepEqual(times, times.toSorted())
  assert.ok(turns > 3, `${turns} turns`)
})

test('other requests run while the keys of one account are listed', async () => {
  await using source = await storeSource('sqlite')
  await using rooms = await openRooms(source)
  const call = await someone(rooms, 'owner@example.test')
  const datasource_ids = JSON.stringify(Array.from({ length: 1_000 }, () => newId()))
  const unset = { last_used_at: null, expires_at: null, revoked_at: null, warned_at: null, last_client: null }
  const keys = Array.from({ length: 300 }, () => ({
    ...{
      id: newId<ApiKeyId>(),
      account_id: call.caller.accountId,
      hash: newId(),
      created_at: '2026-01-01T00:00:00.000Z',
    },
    ...{ name: 'k', hint: 'hint', scopes: '["data:read"]', team_ids: null, ended_team_ids: '[]', ...unset },
    ...{ datasource_ids, replaces: null, replaced_by: null },
  }))
  await rooms.store.write((tx) => tx.insertInto('api_keys').values(keys).execute())
  let listed: readonly ShownKey[] = []
  const turns = await turnsDuring(async () => void (listed = await listKeys(rooms, call)))
  assert.deepEqual([listed.length, listed.at(-1)?.datasourceIds?.length], [300, 1_000])
  assert.ok(turns > 0, `${turns} turns`)
})
