import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createKey } from '../auth/api-keys.ts'
import { authenticator } from '../auth/authenticate.ts'
import type { Call } from '../auth/caller.ts'
import { openDrivers } from '../drivers/index.ts'
import { reach } from '../datasources/require-reach.ts'
import { asId, type TeamId } from '../ids.ts'
import {
  auth,
  codeOf,
  openRooms,
  PASSWORD,
  refusal,
  sessionOf,
  someDatasource,
  type Rooms,
} from '../../test/support/people.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { totp } from '../../test/support/totp.ts'
import { requireMembership } from './require-membership.ts'
import { acceptInvitation, addMember } from './invitations.ts'
import { leaveTeam, openTeam } from './memberships.ts'
import { changeTeam, createTeam, listTeams } from './teams.ts'

const REQUIRED = 'SECOND_FACTOR_REQUIRED'

interface Person {
  readonly call: Call
  readonly email: string
  readonly cookie: string
}

async function person(rooms: Rooms, name: string): Promise<Person> {
  const email = `${name}@example.test`
  const { cookie, json } = await auth(rooms, 'POST sign-up/email', { name, email, password: PASSWORD })
  return { call: await sessionOf(rooms, json.user.id), email, cookie }
}

async function withFactor(rooms: Rooms, { cookie }: Person): Promise<() => Promise<unknown>> {
  const { json } = await auth(rooms, 'POST two-factor/enable', { password: PASSWORD }, { cookie })
  const on = await auth(rooms, 'POST two-factor/verify-totp', { code: totp(json.totpURI) }, { cookie })
  const off = { password: PASSWORD, code: json.backupCodes[0] }
  return () => auth(rooms, 'POST two-factor/disable', off, { cookie: on.cookie })
}

for (const dialect of DIALECTS) {
  describe(`a team that requires a second factor, on ${dialect}`, () => {
    let source: StoreSource
    before(async () => {
      source = await storeSource(dialect)
    })
    after(() => source[Symbol.asyncDispose]())

    const require = async (rooms: Rooms, owner: Person, teamId: TeamId, requireSecondFactor = true) =>
      changeTeam(rooms, owner.call, await requireMembership(rooms, owner.call, teamId), {
        settings: { requireSecondFactor },
      })

    test('members without the required second factor, and their keys, are refused from the next request until they set one up', async () => {
      await using rooms = await openRooms(source)
      await using drivers = await openDrivers({ allowApplicationDefault: false, allowEndpoint: false, alarm: () => {} })
      const [owner, bo] = [await person(rooms, 'owner'), await person(rooms, 'bo')]
      const teamId = asId<TeamId>((await createTeam(rooms, owner.call, { name: 'T' })).id)
      const datasource = await someDatasource(rooms, teamId)
      const at = await requireMembership(rooms, owner.call, teamId)
      const { inviteToken } = await addMember(rooms, owner.call, at, { email: bo.email, role: 'ADMIN' })
      await acceptInvitation(rooms, bo.call, inviteToken)
      await openTeam(rooms, bo.call, await requireMembership(rooms, bo.call, teamId, { invited: true }))
      const { key } = await createKey(rooms, bo.call, { name: 'k', scopes: ['data:read', 'data:schema'] })
      const byKey = { ...bo.call, caller: await authenticator(rooms).authenticate(`Bearer ${key}`) }
      const reached = (call: Call) => reach({ ...rooms, drivers }, call, teamId, datasource)
      await reached(byKey)

      const early = await refusal(require(rooms, owner, teamId))
      assert.equal(early['code'], 'CONFLICT', 'an OWNER without a second factor was locked out')
      await withFactor(rooms, owner)
      const team = await require(rooms, owner, teamId)
      assert.equal(team.settings?.requireSecondFactor, true)
      for (const call of [bo.call, byKey]) {
        assert.equal(await codeOf(requireMembership(rooms, call, teamId)), REQUIRED)
        assert.equal(await codeOf(requireMembership(rooms, call, teamId, { role: 'OWNER', invited: true })), REQUIRED)
        assert.equal(await codeOf(reached(call)), REQUIRED)
        assert.deepEqual(
          (await listTeams(rooms, call)).map((each) => each.id),
          [teamId],
        )
      }
      await reached(owner.call)
      await rooms.audit.flush()
      const rows = await rooms.store.db.selectFrom('audit').selectAll().where('code', '=', REQUIRED).execute()
      assert.ok(rows.length > 0 && rows.every((row) => row.team_id === teamId && row.outcome === 'DENIED'))

      const switchOff = await withFactor(rooms, bo)
      await reached(bo.call)
      await reached(byKey)
      await switchOff()
      assert.equal(await codeOf(reached(byKey)), REQUIRED)
      await require(rooms, owner, teamId, false)
      await reached(byKey)
    })

    test('a member without a second factor can leave, an INVITED member can open the team, and strangers learn nothing', async () => {
      await using rooms = await openRooms(source)
      const [owner, bo, eve] = [await person(rooms, 'owner'), await person(rooms, 'bo'), await person(rooms, 'eve')]
      const teamId = asId<TeamId>((await createTeam(rooms, owner.call, { name: 'T' })).id)
      await withFactor(rooms, owner)
      await require(rooms, owner, teamId)
      const at = await requireMembership(rooms, owner.call, teamId)
      const { inviteToken } = await addMember(rooms, owner.call, at, { email: bo.email, role: 'MEMBER' })
      await acceptInvitation(rooms, bo.call, inviteToken)
      assert.equal(await codeOf(requireMembership(rooms, bo.call, teamId)), 'TEAM_NOT_OPENED')
      await openTeam(rooms, bo.call, await requireMembership(rooms, bo.call, teamId, { invited: true }))
      assert.equal(await codeOf(requireMembership(rooms, bo.call, teamId, { invited: true })), REQUIRED)
      assert.equal(await codeOf(requireMembership(rooms, eve.call, teamId)), 'NOT_FOUND')
      await leaveTeam(
        rooms,
        bo.call,
        await requireMembership(rooms, bo.call, teamId, { invited: true, withoutSecondFactor: true }),
      )
      assert.equal(await codeOf(requireMembership(rooms, bo.call, teamId)), 'NOT_FOUND')
    })
  })
}
