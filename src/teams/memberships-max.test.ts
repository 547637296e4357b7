// Tests the maximum number of members of a team.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { codeOf, openRooms, someone } from '../../test/support/people.ts'
import { DIALECTS, storeSource } from '../../test/support/stores.ts'
import { asId, newId, type AccountId, type TeamId } from '../ids.ts'
import { storedFlag } from '../store/better-auth-booleans.ts'
import { storedTime } from '../store/better-auth-times.ts'
import { acceptInvitation, addMember } from './invitations.ts'
import { removeMember } from './memberships.ts'
import { MEMBERS_MAX } from './memberships-max.ts'
import { requireMembership } from './require-membership.ts'
import { createTeam } from './teams.ts'

for (const dialect of DIALECTS) {
  test(`on ${dialect}, a team with the maximum of members invites and admits nobody until a member is removed`, async () => {
    await using source = await storeSource(dialect)
    await using rooms = await openRooms(source)
    const owner = await someone(rooms, 'owner@example.test')
    const bo = await someone(rooms, 'bo@example.test')
    const teamId = asId<TeamId>((await createTeam(rooms, owner, { name: 'T' })).id)
    const at = await requireMembership(rooms, owner, teamId)
    const invite = (name: string) => addMember(rooms, owner, at, { email: `${name}@example.test`, role: 'MEMBER' })
    const { inviteToken } = await invite('bo')
    const ids = Array.from({ length: MEMBERS_MAX - 1 }, () => newId<AccountId>())
    const time = storedTime(dialect, 0)
    await rooms.store.write(async (tx) => {
      for (let n = 0; n < ids.length; n += 500) {
        const accounts = ids.slice(n, n + 500).map((id) => ({
          ...{ id, name: 'x', email: `${id}@example.test`, image: null, createdAt: time, updatedAt: time },
          emailVerified: storedFlag(dialect, true),
        }))
        await tx.insertInto('accounts').values(accounts).execute()
        const members = accounts.map(({ id }) => ({
          ...{ team_id: teamId, account_id: id, role: 'MEMBER' as const, status: 'ACTIVE' as const },
          created_at: new Date(0).toISOString(),
        }))
        await tx.insertInto('memberships').values(members).execute()
      }
    })
    assert.equal(await codeOf(invite('cleo')), 'CONFLICT')
    assert.equal(await codeOf(acceptInvitation(rooms, bo, inviteToken)), 'CONFLICT')
    await removeMember(rooms, owner, at, ids[0] ?? assert.fail())
    await invite('cleo')
    assert.equal((await acceptInvitation(rooms, bo, inviteToken)).id, teamId)
  })
}
