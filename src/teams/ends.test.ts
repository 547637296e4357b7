import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createKey, rotateKey } from '../auth/api-keys.ts'
import { deleteAccount } from '../auth/own-account.ts'
import { attempts } from '../auth/attempt-counter.ts'
import { authenticator } from '../auth/authenticate.ts'
import { mayEnter, type Call } from '../auth/caller.ts'
import { asId, newId, type InvitationId, type TeamId } from '../ids.ts'
import type { Tables } from '../store/tables.ts'
import { largestTurn } from '../../test/support/largest-turn.ts'
import { startSmtp } from '../../test/support/mail.ts'
import {
  auth,
  codeOf,
  openRooms,
  PASSWORD,
  sessionOf,
  someDatasource,
  someone,
  type Rooms,
} from '../../test/support/people.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { secretOf, totp } from '../../test/support/totp.ts'
import { until } from '../../test/support/until.ts'
import { requireMembership } from './require-membership.ts'
import { acceptInvitation, addMember } from './invitations.ts'
import { changeMember, leaveTeam, openTeam, removeMember } from './memberships.ts'
import { createTeam, deleteTeam } from './teams.ts'

const countOf = async (rooms: Rooms, table: keyof Tables) =>
  (await rooms.store.db.selectFrom(table).selectAll().execute()).length

const invited = (rooms: Rooms) =>
  rooms.store.db.selectFrom('invitations').select('email').where('email', '!=', 'admin@example.test').execute()

async function addInvitations(rooms: Rooms, team_id: TeamId, by: Call, count: number): Promise<void> {
  const rows = Array.from({ length: count }, (_, n) => ({
    ...{ id: newId<InvitationId>(), team_id, email: `${n}@example.test`, role: 'MEMBER' as const, used_at: null },
    ...{ invited_by: by.caller.accountId, token_hash: newId(), created_at: new Date(rooms.now()).toISOString() },
    expires_at: new Date(rooms.now() + 86_400_000).toISOString(),
  }))
  await rooms.store.write((tx) => tx.insertInto('invitations').values(rows).execute())
}

async function join(rooms: Rooms, owner: Call, teamId: TeamId, call: Call, email: string): Promise<void> {
  const at = await requireMembership(rooms, owner, teamId)
  const { inviteToken } = await addMember(rooms, owner, at, { email, role: 'MEMBER' })
  await acceptInvitation(rooms, call, inviteToken)
  await openTeam(rooms, call, await requireMembership(rooms, call, teamId, { invited: true }))
}

for (const dialect of DIALECTS) {
  describe(`deletion on ${dialect}`, () => {
    let source: StoreSource
    before(async () => {
      source = await storeSource(dialect)
    })
    after(() => source[Symbol.asyncDispose]())

    test('the invitations that a deleted account sent end one team at a time', async () => {
      await using rooms = await openRooms(source)
      const owner = await someone(rooms, 'owner@example.test')
      const admin = await someone(rooms, 'admin@example.test')
      const [teams, each] = [4, 60]
      for (let n = 0; n < teams; n++) {
        const teamId = asId<TeamId>((await createTeam(rooms, owner, { name: `T${n}` })).id)
        await join(rooms, owner, teamId, admin, 'admin@example.test')
        const at = await requireMembership(rooms, owner, teamId)
        await changeMember(rooms, owner, at, admin.caller.accountId, { role: 'ADMIN' })
        await addInvitations(rooms, teamId, admin, each)
      }
      const left = async () => (await invited(rooms)).length
      assert.equal(await left(), teams * each)
      const most = await largestTurn(left, () => deleteAccount(rooms, admin, { confirm: 'admin@example.test' }))
      assert.equal(await left(), 0)
      if (dialect === 'sqlite') assert.equal(most, each)
    })

    test('expired invitations are deleted, except of a member who has not opened the team', async () => {
      await using rooms = await openRooms(source)
      const owner = await someone(rooms, 'owner@example.test')
      const teamId = asId<TeamId>((await createTeam(rooms, owner, { name: 'T' })).id)
      const at = await requireMembership(rooms, owner, teamId)
      await join(rooms, owner, teamId, await someone(rooms, 'opened@example.test'), 'opened@example.test')
      await someone(rooms, 'waiting@example.test', { verified: true })
      for (const name of ['waiting', 'expired']) await addMember(rooms, owner, at, { email: `${name}@example.test`, role: 'MEMBER' }) // prettier-ignore
      rooms.clock.at += 10 * 86_400_000
      await addMember(rooms, owner, at, { email: 'pending@example.test', role: 'MEMBER' })
      rooms.clock.at += 5 * 86_400_000
      await addMember(rooms, owner, at, { email: 'new@example.test', role: 'MEMBER' })
      await until('two invitations are deleted', async () => (await invited(rooms)).length === 3)
      const emails = (await invited(rooms)).map(({ email }) => email.split('@')[0])
      assert.deepEqual(emails.sort(), ['new', 'pending', 'waiting'])
    })

    test('deleting an account deletes its sessions, keys, access entries, second factor, links and invitations', async () => {
      await using rooms = await openRooms(source)
      const gate = authenticator(rooms)
      const owner = await someone(rooms, 'owner@example.test')
      const teamId = asId<TeamId>((await createTeam(rooms, owner, { name: 'T' })).id)
      const other = asId<TeamId>((await createTeam(rooms, owner, { name: 'U' })).id)
      const signedUp = await auth(rooms, 'POST sign-up/email', {
        name: 'Bo',
        email: 'bo@example.test',
        password: PASSWORD,
      })
      const { cookie } = signedUp
      const bo = await sessionOf(rooms, signedUp.json.user.id, 'boDid')
      await join(rooms, owner, teamId, bo, 'bo@example.test')
      await addMember(rooms, owner, await requireMembership(rooms, owner, other), {
        email: 'bo@example.test',
        role: 'MEMBER',
      })
      const datasource_id = await someDatasource(rooms, teamId, { accessMode: 'EXPLICIT' })
      const entry = { datasource_id, account_id: bo.caller.accountId }
      await rooms.store.write((tx) => tx.insertInto('access_entries').values(entry).execute())
      const { key } = await createKey(rooms, bo, { name: 'k', scopes: ['profile'] })
      const { json } = await auth(rooms, 'POST two-factor/enable', { password: PASSWORD }, { cookie })
      assert.notEqual(secretOf(json.totpURI), '')
      const on = await auth(rooms, 'POST two-factor/verify-totp', { code: totp(json.totpURI) }, { cookie })
      const { token } = (await auth(rooms, 'GET token', undefined, { cookie: on.cookie })).json
      await auth(rooms, 'POST request-password-reset', { email: 'bo@example.test' })
      const audited = await countOf(rooms, 'audit')

      await deleteAccount(rooms, bo, { confirm: 'Bo@example.test' })
      for (const ended of [token, key])
        assert.equal(await codeOf(gate.authenticate(`Bearer ${ended}`)), 'UNAUTHENTICATED')
      for (const table of ['sessions', 'api_keys', 'access_entries', 'second_factors', 'verifications'] as const) {
        // The team's owner stays signed in.
        assert.equal(await countOf(rooms, table), table === 'sessions' ? 1 : 0, table)
      }
      assert.equal(await countOf(rooms, 'sign_in_methods'), 0)
      assert.equal((await auth(rooms, 'GET get-session', undefined, { cookie: on.cookie })).json, null)
      const waiting = await rooms.store.db.selectFrom('invitations').select('id').where('used_at', 'is', null).execute()
      assert.deepEqual(waiting, [])
      assert.equal(await countOf(rooms, 'audit'), audited + 1)
      const signIn = auth(rooms, 'POST sign-in/email', { email: 'bo@example.test', password: PASSWORD })
      assert.equal(await codeOf(signIn), 'UNAUTHENTICATED')
    })

    test('an ADMIN whose account is deleted cannot return with an invitation that the ADMIN sent', async () => {
      await using rooms = await openRooms(source)
      const owner = await someone(rooms, 'owner@example.test')
      const teamId = asId<TeamId>((await createTeam(rooms, owner, { name: 'T' })).id)
      const admin = await someone(rooms, 'admin@example.test')
      await join(rooms, owner, teamId, admin, 'admin@example.test')
      await changeMember(rooms, owner, await requireMembership(rooms, owner, teamId), admin.caller.accountId, {
        role: 'ADMIN',
      })
      const invite = async (by: Call, email: string) =>
        addMember(rooms, by, await requireMembership(rooms, by, teamId), { email, role: 'ADMIN' })
      const { inviteToken } = await invite(admin, 'later@example.test')
      const verified = await someone(rooms, 'verified@example.test', { verified: true })
      await invite(admin, 'verified@example.test')
      const other = await invite(owner, 'other@example.test')
      await deleteAccount(rooms, admin, { confirm: 'admin@example.test' })
      const later = await someone(rooms, 'later@example.test')
      assert.equal(await codeOf(acceptInvitation(rooms, later, inviteToken)), 'NOT_FOUND')
      assert.equal(await codeOf(requireMembership(rooms, verified, teamId, { invited: true })), 'NOT_FOUND')
      const third = await someone(rooms, 'other@example.test')
      await acceptInvitation(rooms, third, other.inviteToken)
    })

    test('when two OWNERs leave at the same time, one stays', async () => {
      await using rooms = await openRooms(source)
      const [ada, bo] = [await someone(rooms, 'ada@example.test'), await someone(rooms, 'bo@example.test')]
      const teamId = asId<TeamId>((await createTeam(rooms, ada, { name: 'T' })).id)
      await join(rooms, ada, teamId, bo, 'bo@example.test')
      const at = async (call: Call) => requireMembership(rooms, call, teamId)
      await changeMember(rooms, ada, await at(ada), bo.caller.accountId, { role: 'OWNER' })
      const [asAda, asBo] = [await at(ada), await at(bo)]
      const ends = await Promise.allSettled([
        deleteAccount(rooms, ada, { confirm: 'ada@example.test' }),
        leaveTeam(rooms, bo, asBo),
        changeMember(rooms, ada, asAda, ada.caller.accountId, { role: 'MEMBER' }),
      ])
      assert.ok(ends.some((end) => end.status === 'rejected'))
      const owners = await rooms.store.db.selectFrom('memberships').select('role').where('role', '=', 'OWNER').execute()
      assert.equal(owners.length, 1)
    })

    test('when a membership ends, the keys of the account lose the team, and a new invitation does not restore it', async () => {
      await using rooms = await openRooms(source)
      const gate = authenticator(rooms)
      const [owner, bo] = [await someone(rooms, 'owner@example.test'), await someone(rooms, 'bo@example.test')]
      const [teamId, other, gone] = await Promise.all(
        ['T', 'U', 'V'].map(async (name) => asId<TeamId>((await createTeam(rooms, owner, { name })).id)),
      )
      assert.ok(teamId && other && gone)
      for (const id of [teamId, other, gone]) await join(rooms, owner, id, bo, 'bo@example.test')
      const make = (more: object) => createKey(rooms, bo, { name: 'k', scopes: ['data:read'], ...more })
      const [wide, narrow, elsewhere] = [
        await make({}),
        await make({ teamIds: [teamId] }),
        await make({ teamIds: [other] }),
      ]
      const enters = async (key: string) => {
        const caller = await gate.authenticate(`Bearer ${key}`)
        return [teamId, other].map((id) => mayEnter(caller, id))
      }
      await leaveTeam(rooms, bo, await requireMembership(rooms, bo, gone))
      await deleteTeam(rooms, owner, await requireMembership(rooms, owner, gone), { confirm: 'v' })
      for (const end of [
        async () => removeMember(rooms, owner, await requireMembership(rooms, owner, teamId), bo.caller.accountId),
        async () => leaveTeam(rooms, bo, await requireMembership(rooms, bo, teamId)),
      ]) {
        await end()
        await join(rooms, owner, teamId, bo, 'bo@example.test')
        assert.deepEqual(await enters(wide.key), [false, true])
        assert.deepEqual(await enters(narrow.key), [false, false])
        assert.deepEqual(await enters(elsewhere.key), [false, true])
      }
      const rotated = await rotateKey(rooms, bo, wide.id as never, {})
      assert.deepEqual(await enters(rotated.key), [false, true])
      assert.deepEqual(await enters((await make({})).key), [true, true])
      const rows = await rooms.store.db.selectFrom('api_keys').select(['name', 'ended_team_ids']).execute()
      assert.ok(rows.every((row) => !row.ended_team_ids.includes(gone)))
    })

    test('deleting a team deletes its invitations and access lists, and keeps its audit', async () => {
      await using rooms = await openRooms(source)
      const owner = await someone(rooms, 'owner@example.test')
      const teamId = asId<TeamId>((await createTeam(rooms, owner, { name: 'T' })).id)
      const at = await requireMembership(rooms, owner, teamId)
      const { inviteToken } = await addMember(rooms, owner, at, { email: 'bo@example.test', role: 'MEMBER' })
      const datasource_id = await someDatasource(rooms, teamId)
      const entry = { datasource_id, account_id: owner.caller.accountId }
      await rooms.store.write((tx) => tx.insertInto('access_entries').values(entry).execute())
      await deleteTeam(rooms, owner, at, { confirm: 't' })
      assert.equal(await countOf(rooms, 'invitations'), 0)
      await until('the access list is deleted', async () => (await countOf(rooms, 'access_entries')) === 0)
      const rows = await rooms.store.db.selectFrom('audit').select('id').where('team_id', '=', teamId).execute()
      assert.equal(rows.length, 3)
      const bo = await someone(rooms, 'bo@example.test')
      assert.equal(await codeOf(acceptInvitation(rooms, bo, inviteToken)), 'NOT_FOUND')
    })
  })

  test(`on ${dialect}, an invitation is mailed, and only an account that is not verified gets a token`, async () => {
    await using source = await storeSource(dialect)
    await using smtp = await startSmtp()
    await using rooms = await openRooms(source, { SMTP_URL: smtp.url, VITRINE_PUBLIC_URL: 'https://v.example' })
    const owner = await someone(rooms, 'owner@example.test')
    const team = await createTeam(rooms, owner, { name: 'Ops\r\nBcc: eve@example.test' })
    const at = await requireMembership(rooms, owner, asId<TeamId>(team.id))
    await someone(rooms, 'member@example.test', { verified: true })
    const stranger = await addMember(rooms, owner, at, { email: 'New@example.test', role: 'ADMIN' })
    const known = await addMember(rooms, owner, at, { email: 'member@example.test', role: 'ADMIN' })
    const [toNew, toKnown] = [await smtp.next('new@example.test'), await smtp.next('member@example.test')]
    assert.match(
      toNew.text,
      /^owner@example\.test invited you to the team “Ops Bcc: eve@example\.test” in Vitrine, as ADMIN/,
    )
    assert.ok(toNew.text.includes(`POST https://v.example/invitations/${stranger.inviteToken}/accept`))
    assert.ok(!toKnown.text.includes(known.inviteToken) && toKnown.text.includes('open the team'))
    assert.doesNotMatch(toNew.headers, /eve|Bcc/)
    const deps = { ...rooms, tries: attempts(rooms.store, rooms.now) }
    // After ten mails in an hour to one address, the invitation is created without a mail.
    for (let i = 0; i < 12; i++) await addMember(deps, owner, at, { email: 'often@example.test', role: 'MEMBER' })
    await addMember(deps, owner, at, { email: 'last@example.test', role: 'MEMBER' })
    await smtp.next('last@example.test')
    assert.equal(smtp.received.filter(({ to }) => to.includes('often@example.test')).length, 10)
  })
}
