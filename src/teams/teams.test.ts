import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createKey } from '../auth/api-keys.ts'
import { authenticator } from '../auth/authenticate.ts'
import type { Call } from '../auth/caller.ts'
import { asId, newId, type AccountId, type ApiKeyId, type InvitationId, type TeamId } from '../ids.ts'
import type { Role } from '../contract/schemas.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { callOf, codeOf, openRooms, refusal, someDatasource, someone, type Rooms } from '../../test/support/people.ts'
import { until } from '../../test/support/until.ts'
import { OPENED_MAX, UNOPENED_MAX } from './memberships-max.ts'
import { requireMembership } from './require-membership.ts'
import { acceptInvitation, addMember, removeInvitation } from './invitations.ts'
import { changeMember, leaveTeam, listMembers, openTeam, removeMember } from './memberships.ts'
import { settingsOf } from './team-settings.ts'
import { endTeamForKey, listTeamKeys } from './team-keys.ts'
import { changeTeam, createTeam, deleteTeam, describeTeam, listTeams } from './teams.ts'

const idOf = (call: Call): AccountId => call.caller.accountId

async function owned(rooms: Rooms, email = 'owner@example.test') {
  const call = await someone(rooms, email)
  const { id } = await createTeam(rooms, call, { name: 'Team' })
  return { call, teamId: asId<TeamId>(id) }
}

async function member(rooms: Rooms, by: Call, teamId: TeamId, role: Role, email: string): Promise<Call> {
  const call = await someone(rooms, email)
  const { inviteToken } = await addMember(rooms, by, await requireMembership(rooms, by, teamId), { email, role })
  await acceptInvitation(rooms, call, inviteToken)
  await openTeam(rooms, call, await requireMembership(rooms, call, teamId, { invited: true }))
  return call
}

/** Adds teams of which the caller is a MEMBER. */
async function addTeams({ store }: Rooms, call: Call, count: number): Promise<readonly TeamId[]> {
  const ids = Array.from({ length: count }, () => newId<TeamId>())
  const created_at = new Date(0).toISOString()
  const own = { account_id: idOf(call), role: 'MEMBER', status: 'ACTIVE', created_at } as const
  await store.write(async (tx) => {
    const teams = ids.map((id) => ({ id, slug: id, name: 'T', settings: '{}', created_at }))
    await tx.insertInto('teams').values(teams).execute()
    await tx
      .insertInto('memberships')
      .values(ids.map((team_id) => ({ ...own, team_id })))
      .execute()
  })
  return ids
}

const roles = async (rooms: Rooms, call: Call, teamId: TeamId) =>
  (await listMembers(rooms, await requireMembership(rooms, call, teamId))).map((each) => [
    each.email,
    each.role,
    each.status,
  ])

for (const dialect of DIALECTS) {
  describe(`teams on ${dialect}`, () => {
    let source: StoreSource
    before(async () => {
      source = await storeSource(dialect)
    })
    after(() => source[Symbol.asyncDispose]())

    test('strangers can put an account into 50 teams, and more need its acceptance', async () => {
      await using rooms = await openRooms(source)
      const victim = await someone(rooms, 'victim@example.test', { verified: true })
      const order = { email: 'victim@example.test', role: 'MEMBER' } as const
      const { call } = await owned(rooms, 'eve@example.test')
      const invite = async () => {
        const { id } = await createTeam(rooms, call, { name: 'Spam' })
        const teamId = asId<TeamId>(id)
        return { teamId, ...(await addMember(rooms, call, await requireMembership(rooms, call, teamId), order)) }
      }
      const [first] = [await invite()]
      let last = first
      for (let n = 1; n <= UNOPENED_MAX; n++) last = await invite()
      // The answer to the stranger is the same.
      assert.deepEqual(
        { ...last, teamId: '', inviteToken: '', invitationId: '', createdAt: '', expiresAt: '' },
        { ...first, teamId: '', inviteToken: '', invitationId: '', createdAt: '', expiresAt: '' },
      )
      assert.equal((await listTeams(rooms, victim)).length, UNOPENED_MAX)
      assert.equal(await codeOf(acceptInvitation(rooms, victim, last.inviteToken)), 'CONFLICT')
      await leaveTeam(rooms, victim, await requireMembership(rooms, victim, first.teamId, { invited: true }))
      assert.equal((await acceptInvitation(rooms, victim, last.inviteToken)).id, last.teamId)
    })

    test('an account opens at most 200 teams', async () => {
      await using rooms = await openRooms(source)
      const bo = await someone(rooms, 'bo@example.test')
      const { call, teamId } = await owned(rooms)
      const { inviteToken } = await addMember(rooms, call, await requireMembership(rooms, call, teamId), {
        email: 'bo@example.test',
        role: 'MEMBER',
      })
      const teams = await addTeams(rooms, bo, OPENED_MAX)
      await acceptInvitation(rooms, bo, inviteToken)
      const open = async () => openTeam(rooms, bo, await requireMembership(rooms, bo, teamId, { invited: true }))
      assert.equal(await codeOf(open()), 'CONFLICT')
      await leaveTeam(rooms, bo, await requireMembership(rooms, bo, teams[0] ?? teamId))
      assert.equal((await open()).status, 'ACTIVE')
    })

    test('a list of many teams lets other requests run', async () => {
      await using rooms = await openRooms(source)
      const call = await someone(rooms, 'ada@example.test')
      await addTeams(rooms, call, 500)
      let [turns, isRunning] = [0, true]
      const listed = listTeams(rooms, call).finally(() => (isRunning = false))
      while (isRunning) {
        await setImmediate()
        turns++
      }
      assert.equal((await listed).length, 500)
      assert.ok(turns > 1, 'all teams were counted in one turn')
    })

    test('the creator owns a new team, which has default settings and its own slug', async () => {
      await using rooms = await openRooms(source)
      const call = await someone(rooms, 'ada@example.test')
      const first = await createTeam(rooms, call, { name: 'Bars & Co' })
      rooms.clock.at++
      const second = await createTeam(rooms, call, { name: 'Bars & Co' })
      assert.deepEqual([first.slug, second.slug], ['bars-co', 'bars-co-2'])
      assert.deepEqual(
        { ...first, id: '', createdAt: '' },
        {
          id: '',
          name: 'Bars & Co',
          slug: 'bars-co',
          role: 'OWNER',
          status: 'ACTIVE',
          memberCount: 1,
          dataSourceCount: 0,
          createdAt: '',
          settings: {
            queryBudget: { limit: 300, windowSeconds: 60 },
            rowCap: 1000,
            maxResponseBytes: 8 << 20,
            statementTimeoutMs: 15_000,
            postgresMaxPlanCost: 1e6,
            mongodbMaxScannedDocuments: 1e6,
            bigqueryMaxBytes: 2 ** 30,
            auditRetentionDays: 180,
            auditRedactLiterals: false,
            requireSecondFactor: false,
          },
        },
      )
      assert.equal(await codeOf(createTeam(rooms, call, { name: 'x', slug: 'bars-co' })), 'CONFLICT')
      const at = await requireMembership(rooms, call, asId<TeamId>(second.id))
      assert.equal(await codeOf(changeTeam(rooms, call, at, { slug: 'bars-co' })), 'CONFLICT')
      assert.equal((await changeTeam(rooms, call, at, { slug: 'free', name: 'Free' })).slug, 'free')
      assert.deepEqual(
        (await listTeams(rooms, call)).map((team) => team.slug),
        ['bars-co', 'free'],
      )
    })

    test('an account can own at most a hundred teams', async () => {
      await using rooms = await openRooms(source)
      const ada = await someone(rooms, 'ada@example.test')
      const bo = await someone(rooms, 'bo@example.test')
      for (let i = 1; i < 100; i++) await createTeam(rooms, ada, { name: `T${i}` })
      const last = await createTeam(rooms, ada, { name: 'T100' })
      assert.equal(await codeOf(createTeam(rooms, ada, { name: 'T101' })), 'CONFLICT')
      await createTeam(rooms, bo, { name: 'T' })
      await rooms.store.write((tx) => tx.deleteFrom('teams').where('slug', '=', last.slug).execute())
      await createTeam(rooms, ada, { name: 'T100' })
    })

    test('an account that was invited as OWNER of a hundred teams can still create a team', async () => {
      await using rooms = await openRooms(source)
      const eve = await someone(rooms, 'eve@example.test')
      const ada = await someone(rooms, 'ada@example.test', { verified: true })
      for (let i = 0; i < 100; i++) {
        const { id } = await createTeam(rooms, eve, { name: `T${i}` })
        const at = await requireMembership(rooms, eve, asId<TeamId>(id))
        await addMember(rooms, eve, at, { email: 'ada@example.test', role: 'OWNER' })
      }
      await createTeam(rooms, ada, { name: 'Mine' })
    })

    test('a change of team settings keeps all other settings, applies immediately, and is refused as a whole if one value is invalid', async () => {
      await using rooms = await openRooms(source, { VITRINE_MAX_ROW_CAP: '500', VITRINE_MAX_QUERY_BUDGET: '1000' })
      const { call, teamId } = await owned(rooms)
      const at = await requireMembership(rooms, call, teamId)
      assert.equal((await settingsOf(rooms, teamId)).rowCap, 500)
      await changeTeam(rooms, call, at, { settings: { rowCap: 7 } })
      await changeTeam(rooms, call, at, { settings: { queryBudget: { limit: 5, windowSeconds: 9 } } })
      const now = await settingsOf(rooms, teamId)
      assert.deepEqual([now.rowCap, now.queryBudget], [7, { limit: 5, windowSeconds: 9 }])
      const wrong = await refusal(
        changeTeam(rooms, call, at, {
          name: 'Other',
          settings: { auditRetentionDays: 3, rowCap: 501, queryBudget: { limit: 1001, windowSeconds: 1 } },
        }),
      )
      assert.equal(wrong['code'], 'INVALID_REQUEST')
      assert.equal((wrong['details'] as string[]).length, 2)
      const after = await describeTeam(rooms, call, at)
      assert.deepEqual([after.name, after.settings?.rowCap, after.settings?.auditRetentionDays], ['Team', 7, 180])
    })

    test('a stranger to a team, a restricted key, and a caller who names an unknown team get the same answer', async () => {
      await using rooms = await openRooms(source)
      const { call, teamId } = await owned(rooms)
      const stranger = await someone(rooms, 'eve@example.test')
      const none = await refusal(requireMembership(rooms, call, newId()))
      assert.equal(none['code'], 'NOT_FOUND')
      assert.deepEqual(await refusal(requireMembership(rooms, stranger, teamId)), none)
      const other = await createTeam(rooms, call, { name: 'Other' })
      const { key } = await createKey(rooms, call, { name: 'k', scopes: ['data:schema'], teamIds: [other.id] })
      const caller = await authenticator(rooms).authenticate(`Bearer ${key}`)
      assert.deepEqual(await refusal(requireMembership(rooms, { ...call, caller }, teamId)), none)
      assert.deepEqual(
        (await listTeams(rooms, { ...call, caller })).map((team) => team.id),
        [other.id],
      )
    })

    test('an invitation can be accepted once, by the account of its address, within 14 days', async () => {
      await using rooms = await openRooms(source)
      const { call, teamId } = await owned(rooms)
      const at = await requireMembership(rooms, call, teamId)
      const invited = await addMember(rooms, call, at, { email: 'Cy@Example.test', role: 'MEMBER' })
      assert.deepEqual(
        [invited.email, invited.role, invited.status, invited.accountId],
        ['cy@example.test', 'MEMBER', 'INVITED', null],
      )
      const kept = await rooms.store.db.selectFrom('invitations').selectAll().execute()
      assert.ok(!JSON.stringify(kept).includes(invited.inviteToken))
      const cy = await someone(rooms, 'cy@example.test')
      const eve = await someone(rooms, 'eve@example.test')
      const none = await refusal(acceptInvitation(rooms, cy, 'x'.repeat(43)))
      assert.equal(none['code'], 'NOT_FOUND')
      assert.deepEqual(await refusal(acceptInvitation(rooms, eve, invited.inviteToken)), none)
      const team = await acceptInvitation(rooms, cy, invited.inviteToken)
      assert.deepEqual([team.role, team.status, team.memberCount], ['MEMBER', 'INVITED', 2])
      assert.deepEqual(await refusal(acceptInvitation(rooms, cy, invited.inviteToken)), none)
      assert.deepEqual(await refusal(acceptInvitation(rooms, eve, invited.inviteToken)), none)

      const late = await addMember(rooms, call, at, { email: 'eve@example.test', role: 'MEMBER' })
      rooms.clock.at += 14 * 86_400_000
      assert.deepEqual(await refusal(acceptInvitation(rooms, eve, late.inviteToken)), none)
      assert.equal((await listMembers(rooms, at)).length, 2)
      assert.equal(await codeOf(addMember(rooms, call, at, { email: 'cy@example.test', role: 'MEMBER' })), 'CONFLICT')
    })

    test('when a member leaves or loses the role, the invitations that the member sent end', async () => {
      for (const role of ['MEMBER', null] as const) {
        await using rooms = await openRooms(source)
        const { call: ada, teamId } = await owned(rooms)
        const bo = await member(rooms, ada, teamId, 'ADMIN', 'bo@example.test')
        const [asAda, asBo] = [await requireMembership(rooms, ada, teamId), await requireMembership(rooms, bo, teamId)]
        const [cy, dan] = [
          await someone(rooms, 'cy@example.test'),
          await someone(rooms, 'dan@example.test', { verified: true }),
        ]
        const { inviteToken } = await addMember(rooms, bo, asBo, { email: 'cy@example.test', role: 'ADMIN' })
        await addMember(rooms, bo, asBo, { email: 'dan@example.test', role: 'ADMIN' })
        const eve = await member(rooms, bo, teamId, 'MEMBER', 'eve@example.test')
        const kept = await addMember(rooms, ada, asAda, { email: 'fay@example.test', role: 'ADMIN' })
        if (role === null) await removeMember(rooms, ada, asAda, bo.caller.accountId)
        else await changeMember(rooms, ada, asAda, bo.caller.accountId, { role })
        assert.equal(await codeOf(acceptInvitation(rooms, cy, inviteToken)), 'NOT_FOUND')
        assert.equal(await codeOf(requireMembership(rooms, dan, teamId, { invited: true })), 'NOT_FOUND')
        await requireMembership(rooms, eve, teamId)
        await acceptInvitation(rooms, await someone(rooms, 'fay@example.test'), kept.inviteToken)
      }
    })

    test('a verified account becomes a member immediately, and the answer has the same shape as for an unknown address', async () => {
      await using rooms = await openRooms(source)
      const { call, teamId } = await owned(rooms)
      const at = await requireMembership(rooms, call, teamId)
      const bo = await someone(rooms, 'bo@example.test', { verified: true })
      const known = await addMember(rooms, call, at, { email: 'bo@example.test', role: 'ADMIN' })
      const unknown = await addMember(rooms, call, at, { email: 'no@example.test', role: 'ADMIN' })
      const face = (invited: object) =>
        Object.entries(invited).map(([key, value]) => [key, value === null ? null : typeof value])
      assert.deepEqual(face(known), face(unknown))
      assert.deepEqual(
        (await listTeams(rooms, bo)).map((team) => [team.role, team.status]),
        [['ADMIN', 'INVITED']],
      )
      assert.equal(await codeOf(acceptInvitation(rooms, bo, known.inviteToken)), 'NOT_FOUND')
      assert.deepEqual(await roles(rooms, call, teamId), [
        ['owner@example.test', 'OWNER', 'ACTIVE'],
        ['bo@example.test', 'ADMIN', 'INVITED'],
        ['no@example.test', 'ADMIN', 'INVITED'],
      ])
    })

    test('a team has at most 500 pending invitations', async () => {
      await using rooms = await openRooms(source)
      const { call, teamId } = await owned(rooms)
      const at = await requireMembership(rooms, call, teamId)
      const invite = (email: string) => addMember(rooms, call, at, { email, role: 'MEMBER' })
      const first = await invite('first@example.test')
      const row = await rooms.store.db.selectFrom('invitations').selectAll().executeTakeFirstOrThrow()
      await rooms.store.write(async (tx) => {
        for (let n = 1; n < 500; n++) {
          const copy = { id: newId<InvitationId>(), email: `${n}@example.test`, token_hash: newId() }
          await tx
            .insertInto('invitations')
            .values({ ...row, ...copy })
            .execute()
        }
      })
      await assert.rejects(invite('no@example.test'), { code: 'CONFLICT', message: /at most 500 pending invitations/ })
      await someone(rooms, 'verified@example.test', { verified: true })
      assert.equal(await codeOf(invite('verified@example.test')), 'CONFLICT', 'the same answer as for a stranger')
      const again = await invite('first@example.test')
      assert.notEqual(again.invitationId, first.invitationId, 'replaces the older one')
      rooms.clock.at += 15 * 86_400_000
      await invite('no@example.test')
    })

    test('only managers see pending invitations, and a new invitation replaces the old one and can be revoked', async () => {
      await using rooms = await openRooms(source)
      const { call, teamId } = await owned(rooms)
      const cy = await member(rooms, call, teamId, 'MEMBER', 'cy@example.test')
      const at = await requireMembership(rooms, call, teamId)
      const old = await addMember(rooms, call, at, { email: 'no@example.test', role: 'MEMBER' })
      const next = await addMember(rooms, call, at, { email: 'no@example.test', role: 'ADMIN' })
      const no = await someone(rooms, 'no@example.test')
      assert.equal(await codeOf(acceptInvitation(rooms, no, old.inviteToken)), 'NOT_FOUND')
      const pending = (await listMembers(rooms, at)).filter((each) => each.invitationId !== undefined)
      const { inviteToken, ...listed } = next
      assert.deepEqual(pending, [listed])
      assert.equal((await listMembers(rooms, await requireMembership(rooms, cy, teamId))).length, 2)
      const id = asId<InvitationId>(next.invitationId ?? '')
      await removeInvitation(rooms, call, at, id)
      assert.equal(await codeOf(acceptInvitation(rooms, no, inviteToken)), 'NOT_FOUND')
      assert.equal(await codeOf(removeInvitation(rooms, call, at, id)), 'NOT_FOUND')
    })

    test('an INVITED member sees only the team itself until the member opens it', async () => {
      await using rooms = await openRooms(source)
      const { call, teamId } = await owned(rooms)
      await someDatasource(rooms, teamId)
      const cy = await someone(rooms, 'cy@example.test', { verified: true })
      await addMember(rooms, call, await requireMembership(rooms, call, teamId), {
        email: 'cy@example.test',
        role: 'ADMIN',
      })
      for (const need of [{}, { role: 'ADMIN' }, { role: 'OWNER' }] as const) {
        assert.equal(await codeOf(requireMembership(rooms, cy, teamId, need)), 'TEAM_NOT_OPENED')
      }
      const at = await requireMembership(rooms, cy, teamId, { invited: true })
      const shown = await describeTeam(rooms, cy, at)
      assert.ok(!('settings' in shown))
      assert.deepEqual([shown.status, shown.dataSourceCount], ['INVITED', 0])
      const opened = await openTeam(rooms, cy, at)
      assert.deepEqual([opened.status, opened.dataSourceCount], ['ACTIVE', 1])
      assert.equal((await requireMembership(rooms, cy, teamId, { role: 'ADMIN' })).role, 'ADMIN')
      assert.equal((await openTeam(rooms, cy, at)).status, 'ACTIVE')
    })

    test('the number of datasources of a team counts only those that the caller reaches', async () => {
      await using rooms = await openRooms(source)
      const { call, teamId } = await owned(rooms)
      const cy = await member(rooms, call, teamId, 'MEMBER', 'cy@example.test')
      await someDatasource(rooms, teamId, { minRole: 'ADMIN' })
      const open = await someDatasource(rooms, teamId, { minRole: 'MEMBER' })
      const listed = await someDatasource(rooms, teamId, { accessMode: 'EXPLICIT' })
      const counts = async (of: Call) => (await listTeams(rooms, of)).map((team) => team.dataSourceCount)
      assert.deepEqual([await counts(call), await counts(cy)], [[3], [1]])
      const entry = { datasource_id: listed, account_id: idOf(cy) }
      await rooms.store.write((tx) => tx.insertInto('access_entries').values(entry).execute())
      assert.deepEqual(await counts(cy), [2])
      const { key } = await createKey(rooms, cy, { name: 'k', scopes: ['data:schema'], datasourceIds: [open] })
      const caller = await authenticator(rooms).authenticate(`Bearer ${key}`)
      assert.deepEqual(await counts({ ...cy, caller }), [1])
      await leaveTeam(rooms, cy, await requireMembership(rooms, cy, teamId))
      assert.deepEqual(await rooms.store.db.selectFrom('access_entries').selectAll().execute(), [])
    })

    test("roles can be given only up to one's own, OWNERs are changed only by OWNERs, and the last OWNER stays", async () => {
      await using rooms = await openRooms(source)
      const { call: ada, teamId } = await owned(rooms, 'ada@example.test')
      const bo = await member(rooms, ada, teamId, 'ADMIN', 'bo@example.test')
      const cy = await member(rooms, ada, teamId, 'MEMBER', 'cy@example.test')
      const at = (call: Call) => requireMembership(rooms, call, teamId)
      const needs = async (work: Promise<unknown>) => {
        const { code, requiredRole } = await refusal(work)
        return [code, requiredRole]
      }
      assert.deepEqual(await needs(requireMembership(rooms, cy, teamId, { role: 'ADMIN' })), ['ROLE_REQUIRED', 'ADMIN'])
      assert.deepEqual(await needs(addMember(rooms, bo, await at(bo), { email: 'x@example.test', role: 'OWNER' })), [
        'ROLE_REQUIRED',
        'OWNER',
      ])
      assert.deepEqual(await needs(changeMember(rooms, bo, await at(bo), idOf(cy), { role: 'OWNER' })), [
        'ROLE_REQUIRED',
        'OWNER',
      ])
      const asBo = await at(bo)
      for (const work of [
        () => changeMember(rooms, bo, asBo, idOf(ada), { role: 'MEMBER' }),
        () => removeMember(rooms, bo, asBo, idOf(ada)),
      ]) {
        assert.deepEqual(await needs(work()), ['ROLE_REQUIRED', 'OWNER'])
      }
      assert.equal(await codeOf(leaveTeam(rooms, ada, await at(ada))), 'CONFLICT')
      assert.equal(await codeOf(changeMember(rooms, ada, await at(ada), idOf(ada), { role: 'ADMIN' })), 'CONFLICT')
      assert.equal(await codeOf(removeMember(rooms, ada, await at(ada), idOf(ada))), 'CONFLICT')
      assert.equal(await codeOf(removeMember(rooms, ada, await at(ada), newId())), 'NOT_FOUND')

      assert.equal((await changeMember(rooms, bo, await at(bo), idOf(cy), { role: 'ADMIN' })).role, 'ADMIN')
      assert.equal((await at(cy)).role, 'ADMIN')
      // The caller lost the role after the route's check. Only the current role counts.
      const before = await at(bo)
      await changeMember(rooms, ada, await at(ada), idOf(bo), { role: 'MEMBER' })
      assert.equal(await codeOf(removeMember(rooms, bo, before, idOf(cy))), 'ROLE_REQUIRED')

      await changeMember(rooms, ada, await at(ada), idOf(cy), { role: 'OWNER' })
      const [asAda, asCy] = [await at(ada), await at(cy)]
      const ended = await Promise.allSettled([leaveTeam(rooms, ada, asAda), leaveTeam(rooms, cy, asCy)])
      assert.deepEqual(ended.map((each) => each.status).sort(), ['fulfilled', 'rejected'])
      const owners = await rooms.store.db.selectFrom('memberships').select('role').where('role', '=', 'OWNER').execute()
      assert.equal(owners.length, 1)
    })

    test('an ADMIN cannot replace an invitation as OWNER while it can be accepted', async () => {
      await using rooms = await openRooms(source)
      const { call, teamId } = await owned(rooms)
      const bo = await member(rooms, call, teamId, 'ADMIN', 'bo@example.test')
      const at = (of: Call) => requireMembership(rooms, of, teamId)
      const cy = await member(rooms, call, teamId, 'OWNER', 'cy@example.test')
      await leaveTeam(rooms, cy, await at(cy))
      await addMember(rooms, bo, await at(bo), { email: 'cy@example.test', role: 'MEMBER' })
      const order = { email: 'di@example.test', role: 'MEMBER' } as const
      await addMember(rooms, call, await at(call), { ...order, role: 'OWNER' })
      assert.equal(await codeOf(addMember(rooms, bo, await at(bo), order)), 'ROLE_REQUIRED')
      rooms.clock.at += 14 * 86_400_000
      assert.equal((await addMember(rooms, bo, await at(bo), order)).role, 'MEMBER')
    })

    test('the only ACTIVE OWNER cannot leave the team to an INVITED OWNER', async () => {
      await using rooms = await openRooms(source)
      const { call, teamId } = await owned(rooms)
      await someone(rooms, 'bo@example.test', { verified: true })
      await addMember(rooms, call, await requireMembership(rooms, call, teamId), {
        email: 'bo@example.test',
        role: 'OWNER',
      })
      assert.equal(await codeOf(leaveTeam(rooms, call, await requireMembership(rooms, call, teamId))), 'CONFLICT')
    })

    test('managers see the keys that reach the team, and can end a key only in this team', async () => {
      await using rooms = await openRooms(source)
      const { call: ada, teamId } = await owned(rooms, 'ada@example.test')
      const bo = await member(rooms, ada, teamId, 'ADMIN', 'bo@example.test')
      const cy = await member(rooms, ada, teamId, 'MEMBER', 'cy@example.test')
      const eve = await someone(rooms, 'eve@example.test')
      const elsewhere = await createTeam(rooms, cy, { name: 'Else' })
      const scopes = ['data:schema'] as const
      const wide = await createKey(rooms, cy, { name: 'wide', scopes })
      rooms.clock.at++
      const both = await createKey(rooms, cy, { name: 'both', scopes, teamIds: [teamId, elsewhere.id] })
      rooms.clock.at++
      await createKey(rooms, cy, { name: 'away', scopes, teamIds: [elsewhere.id] })
      await createKey(rooms, eve, { name: 'strange', scopes })
      rooms.clock.at++
      const owner = await createKey(rooms, ada, { name: 'owner', scopes })
      const at = await requireMembership(rooms, bo, teamId, { role: 'ADMIN' })
      const list = async () => await listTeamKeys(rooms, at)
      assert.deepEqual(
        (await list()).map((key) => [key.name, key.email, key.teamIds]),
        [
          ['wide', 'cy@example.test', null],
          // The team must not see the other teams of the key.
          ['both', 'cy@example.test', [teamId]],
          ['owner', 'ada@example.test', null],
        ],
      )
      assert.ok(!JSON.stringify(await list()).includes('sk_live_'))
      const end = (id: string) => endTeamForKey(rooms, bo, at, asId<ApiKeyId>(id))
      // After an invitation, the keys of the account stay hidden until its owner opens the team.
      const vic = await someone(rooms, 'vic@example.test', { verified: true })
      const secret = await createKey(rooms, vic, { name: 'secret', scopes })
      await addMember(rooms, bo, at, { email: 'vic@example.test', role: 'MEMBER' })
      assert.deepEqual(
        (await list()).map((key) => key.name),
        ['wide', 'both', 'owner'],
      )
      assert.equal(await codeOf(end(secret.id)), 'NOT_FOUND')
      assert.equal((await listMembers(rooms, at)).find(({ email }) => email === 'vic@example.test')?.name, null)
      await end(wide.id)
      assert.deepEqual(
        (await list()).map((key) => key.name),
        ['both', 'owner'],
      )
      const caller = await authenticator(rooms).authenticate(`Bearer ${wide.key}`)
      assert.equal(await codeOf(requireMembership(rooms, { ...cy, caller }, teamId)), 'NOT_FOUND')
      assert.deepEqual(
        (await listTeams(rooms, { ...cy, caller })).map((team) => team.id),
        [elsewhere.id],
      )
      const other = await authenticator(rooms).authenticate(`Bearer ${both.key}`)
      assert.equal((await requireMembership(rooms, { ...cy, caller: other }, teamId)).role, 'MEMBER')
      assert.equal(await codeOf(end(wide.id)), 'NOT_FOUND')
      assert.equal(await codeOf(end(newId())), 'NOT_FOUND')
      assert.equal(await codeOf(end(owner.id)), 'ROLE_REQUIRED')
    })

    test('in the keys of members, managers see only the datasources that they can reach themselves', async () => {
      await using rooms = await openRooms(source)
      const { call: ada, teamId } = await owned(rooms)
      const bo = await member(rooms, ada, teamId, 'ADMIN', 'bo@example.test')
      const open = await someDatasource(rooms, teamId)
      const shut = await someDatasource(rooms, teamId, { accessMode: 'EXPLICIT' })
      await createKey(rooms, ada, { name: 'k', scopes: ['data:schema'], datasourceIds: [open, shut] })
      const seenBy = async (call: typeof ada) =>
        (await listTeamKeys(rooms, await requireMembership(rooms, call, teamId))).map((key) => key.datasourceIds)
      assert.deepEqual(await seenBy(bo), [[open]])
      assert.deepEqual(await seenBy(ada), [[open, shut]])
    })

    test('deleting a team needs its slug and a recent sign-in, and deletes its contents', async () => {
      await using rooms = await openRooms(source)
      const { call, teamId } = await owned(rooms)
      const datasource = await someDatasource(rooms, teamId)
      const secret = { datasource_id: datasource, field: 'password', sealed: 'x' }
      await rooms.store.write((tx) => tx.insertInto('datasource_secrets').values(secret).execute())
      const at = await requireMembership(rooms, call, teamId)
      for (const body of [{}, { confirm: 'no' }]) {
        assert.equal(await codeOf(deleteTeam(rooms, call, at, body)), 'REAUTHENTICATION_REQUIRED')
      }
      rooms.clock.at += 601_000
      assert.equal(await codeOf(deleteTeam(rooms, call, at, { confirm: 'team' })), 'REAUTHENTICATION_REQUIRED')
      await deleteTeam(rooms, callOf(rooms, idOf(call)), at, { confirm: 'team' })
      assert.deepEqual(rooms.gone, [datasource])
      assert.equal(await codeOf(requireMembership(rooms, call, teamId)), 'NOT_FOUND')
      for (const table of ['teams', 'memberships', 'datasources', 'datasource_secrets'] as const) {
        const rows = () => rooms.store.db.selectFrom(table).selectAll().execute()
        await until(`there are no ${table}`, async () => (await rows()).length === 0)
      }
    })

    test('changes in a team are in the audit before the answer is sent', async () => {
      await using rooms = await openRooms(source)
      const { call, teamId } = await owned(rooms)
      const at = await requireMembership(rooms, call, teamId)
      const doing = (action: string): Call => ({ ...call, action })
      await changeTeam(rooms, doing('changeTeam'), at, { name: 'New' })
      await addMember(rooms, doing('addMember'), at, { email: 'x@example.test', role: 'MEMBER' })
      await createKey(rooms, doing('createKey'), { name: 'k', scopes: ['profile'] })
      const audit = rooms.store.db.selectFrom('audit').select(['action', 'team_id', 'outcome'])
      const rows = await audit.where('action', '!=', 'test').orderBy('action').execute()
      assert.deepEqual(
        rows.map((row) => ({ ...row })),
        [
          { action: 'addMember', team_id: teamId, outcome: 'ANSWERED' },
          { action: 'changeTeam', team_id: teamId, outcome: 'ANSWERED' },
          { action: 'createKey', team_id: null, outcome: 'ANSWERED' },
        ],
      )
    })
  })
}
