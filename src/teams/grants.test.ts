import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createKey } from '../auth/api-keys.ts'
import { endGrant, listGrants, makeGrant, narrowGrant, type GrantOrder } from '../auth/grants.ts'
import type { Call } from '../auth/caller.ts'
import { asId, newId, type AccountId, type GrantId, type TeamId } from '../ids.ts'
import { storedFlag } from '../store/better-auth-booleans.ts'
import { startSmtp } from '../../test/support/mail.ts'
import {
  auth,
  callOf,
  codeOf,
  openRooms,
  PASSWORD,
  refusal,
  someDatasource,
  someone,
  type Rooms,
} from '../../test/support/people.ts'
import { until } from '../../test/support/until.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { acceptInvitation, addMember } from './invitations.ts'
import { leaveTeam, openTeam } from './memberships.ts'
import { requireMembership } from './require-membership.ts'
import { endTeamForGrant, listTeamGrants } from './team-grants.ts'
import { createTeam } from './teams.ts'

const CLIENT = { clientId: 'https://agent.example/client.json', clientName: 'Agent', clientHost: 'agent.example' }

async function teamOf(rooms: Rooms, owner: Call, name: string): Promise<TeamId> {
  return asId<TeamId>((await createTeam(rooms, owner, { name })).id)
}

async function join(rooms: Rooms, owner: Call, teamId: TeamId, call: Call, email: string): Promise<void> {
  const at = await requireMembership(rooms, owner, teamId)
  const { inviteToken } = await addMember(rooms, owner, at, { email, role: 'MEMBER' })
  await acceptInvitation(rooms, call, inviteToken)
  await openTeam(rooms, call, await requireMembership(rooms, call, teamId, { invited: true }))
}

function grant(rooms: Rooms, call: Call, teamIds: readonly string[], more: Partial<GrantOrder> = {}) {
  // Lists are ordered by time, so move the clock with each grant.
  rooms.clock.at++
  return makeGrant(rooms, call, { ...CLIENT, scopes: ['data:schema', 'data:read'], teamIds, ...more })
}

/** Stores a refresh token of a grant, as the OAuth library does. */
async function addToken({ store }: Rooms, accountId: AccountId, referenceId: GrantId): Promise<void> {
  const [createdAt, expiresAt] = ['2026-01-01T00:00:00Z', '2099-01-01T00:00:00Z']
  const row = { id: newId(), token: newId(), clientId: CLIENT.clientId, userId: accountId, referenceId, scopes: '[]' }
  const tables = store.db.withTables<{ oauth_refresh_tokens: Record<string, unknown> }>()
  await tables
    .insertInto('oauth_refresh_tokens')
    .values({ ...row, createdAt, expiresAt })
    .execute()
}

const tokensOf = async ({ store }: Rooms) =>
  (await store.db.selectFrom('oauth_refresh_tokens').select('referenceId').execute()).map((row) => row.referenceId)

async function audited(rooms: Rooms): Promise<object[]> {
  await rooms.audit.flush()
  const rows = await rooms.store.db.selectFrom('audit').selectAll().orderBy('id').execute()
  return rows.flatMap((row) => {
    const { target, changes } = JSON.parse(row.detail ?? '{}')
    return target?.kind === 'grant' ? [{ action: row.action, name: target.name, id: target.id, changes }] : []
  })
}

for (const dialect of DIALECTS) {
  describe(`grants on ${dialect}`, () => {
    let source: StoreSource
    before(async () => {
      source = await storeSource(dialect)
    })
    after(() => source[Symbol.asyncDispose]())

    test('a grant can be created only for teams and datasources that the account can reach', async () => {
      await using rooms = await openRooms(source)
      const ada = await someone(rooms, 'ada@example.test')
      const bo = await someone(rooms, 'bo@example.test')
      const [own, foreign] = [await teamOf(rooms, ada, 'A'), await teamOf(rooms, bo, 'B')]
      const [mine, theirs] = [await someDatasource(rooms, own), await someDatasource(rooms, foreign)]
      assert.equal(await codeOf(grant(rooms, ada, [foreign])), 'INVALID_REQUEST')
      assert.equal(await codeOf(grant(rooms, ada, [own], { datasourceIds: [theirs] })), 'INVALID_REQUEST')
      const id = await grant(rooms, { ...ada, action: 'makeGrant' }, [own], { datasourceIds: [mine] })
      const shown = await listGrants(rooms, ada)
      assert.deepEqual(shown, [
        {
          id,
          clientName: 'Agent',
          clientHost: 'agent.example',
          scopes: ['data:schema', 'data:read'],
          teamIds: [own],
          datasourceIds: [mine],
          createdAt: new Date(rooms.clock.at).toISOString(),
          lastUsedAt: null,
          expiresAt: null,
        },
      ])
      assert.deepEqual(await listGrants(rooms, bo), [])
      assert.deepEqual(await audited(rooms), [
        {
          action: 'makeGrant',
          name: 'Agent',
          id,
          changes: {
            scopes: { added: ['data:schema', 'data:read'], removed: [] },
            teamIds: { added: [own], removed: [] },
            datasourceIds: { added: [mine], removed: [] },
            expiresAt: { from: null, to: 'never' },
            clientHost: { from: null, to: 'agent.example' },
          },
        },
      ])
    })

    test('a grant can lose scopes, teams, datasources and time, but cannot gain any', async () => {
      await using rooms = await openRooms(source)
      const ada = await someone(rooms, 'ada@example.test')
      const bo = await someone(rooms, 'bo@example.test')
      const [a, b, c] = [await teamOf(rooms, ada, 'A'), await teamOf(rooms, ada, 'B'), await teamOf(rooms, ada, 'C')]
      const [one, two] = [await someDatasource(rooms, a), await someDatasource(rooms, a)]
      const id = await grant(rooms, ada, [a, b])
      const at = (ms: number) => new Date(rooms.clock.at + ms).toISOString()
      const narrow = (change: object, by = ada) => narrowGrant(rooms, { ...by, action: 'narrowGrant' }, id, change)
      for (const wider of [{ scopes: ['profile', 'data:read'] }, { teamIds: [a, c] }, { teamIds: [newId()] }]) {
        assert.equal((await refusal(narrow(wider)))['code'], 'INVALID_REQUEST', JSON.stringify(wider))
      }
      assert.equal(await codeOf(narrow({ expiresAt: at(-1) })), 'INVALID_REQUEST')
      assert.equal(await codeOf(narrow({ datasourceIds: [newId()] })), 'INVALID_REQUEST')
      assert.equal(await codeOf(narrow({ scopes: ['data:schema'] }, bo)), 'NOT_FOUND')
      const narrowed = await narrow({
        scopes: ['data:schema'],
        teamIds: [a],
        datasourceIds: [one],
        expiresAt: at(60_000),
      })
      assert.deepEqual(
        [narrowed.scopes, narrowed.teamIds, narrowed.datasourceIds, narrowed.expiresAt],
        [['data:schema'], [a], [one], at(60_000)],
      )
      assert.deepEqual((await audited(rooms)).at(-1), {
        action: 'narrowGrant',
        name: 'Agent',
        id,
        changes: {
          scopes: { added: [], removed: ['data:read'] },
          teamIds: { added: [], removed: [b] },
          datasourceIds: { from: 'all', to: [one] },
          expiresAt: { from: 'never', to: at(60_000) },
        },
      })
      assert.deepEqual(await listGrants(rooms, ada), [narrowed])
      for (const wider of [{ scopes: ['data:read'] }, { teamIds: [b] }, { datasourceIds: [one, two] }]) {
        assert.equal(await codeOf(narrow(wider)), 'INVALID_REQUEST', JSON.stringify(wider))
      }
      assert.equal(await codeOf(narrow({ expiresAt: at(60_001) })), 'INVALID_REQUEST')
      assert.deepEqual(await narrow({}), narrowed)
      rooms.clock.at += 60_000
      assert.deepEqual(await listGrants(rooms, ada), [])
      assert.equal(await codeOf(narrow({ scopes: ['data:schema'] })), 'NOT_FOUND')
    })

    test('an ended grant and its refresh tokens disappear', async () => {
      await using rooms = await openRooms(source)
      const ada = await someone(rooms, 'ada@example.test')
      const bo = await someone(rooms, 'bo@example.test')
      const team = await teamOf(rooms, ada, 'A')
      const [first, second] = [await grant(rooms, ada, [team]), await grant(rooms, ada, [team])]
      for (const id of [first, second]) await addToken(rooms, ada.caller.accountId, id)
      assert.equal(await codeOf(endGrant(rooms, bo, first)), 'NOT_FOUND')
      await endGrant(rooms, { ...ada, action: 'endGrant' }, first)
      assert.equal(await codeOf(endGrant(rooms, ada, first)), 'NOT_FOUND')
      assert.deepEqual(
        (await listGrants(rooms, ada)).map((shown) => shown.id),
        [second],
      )
      await until('the deletion', async () => (await tokensOf(rooms)).length === 1)
      assert.deepEqual(await tokensOf(rooms), [second])
      assert.deepEqual((await audited(rooms)).at(-1), {
        action: 'endGrant',
        name: 'Agent',
        id: first,
        changes: { revokedAt: { from: null, to: new Date(rooms.clock.at).toISOString() } },
      })
    })

    test('an account connects at most 100 agents', async () => {
      await using rooms = await openRooms(source)
      const ada = await someone(rooms, 'ada@example.test')
      const team = await teamOf(rooms, ada, 'A')
      const first = await grant(rooms, ada, [team])
      for (let n = 1; n < 100; n++) await grant(rooms, ada, [team])
      assert.equal(await codeOf(grant(rooms, ada, [team])), 'CONFLICT')
      await endGrant(rooms, ada, first)
      await grant(rooms, ada, [team])
    })

    test('the agents of an account list at most 5,000 datasources together, and so do its keys', async () => {
      await using rooms = await openRooms(source)
      const ada = await someone(rooms, 'ada@example.test')
      const team = await teamOf(rooms, ada, 'A')
      const datasourceIds: string[] = []
      while (datasourceIds.length < 500) datasourceIds.push(await someDatasource(rooms, team))
      const order = { name: 'K', scopes: ['data:read' as const], datasourceIds }
      for (let n = 0; n < 10; n++) {
        await grant(rooms, ada, [team], { datasourceIds })
        await createKey(rooms, ada, order)
      }
      for (const one of [() => grant(rooms, ada, [team], { datasourceIds }), () => createKey(rooms, ada, order)]) {
        const { code, message } = await refusal(one())
        assert.deepEqual([code, /at most 5000 datasources together/.test(String(message))], ['CONFLICT', true])
      }
      await grant(rooms, ada, [team])
      await createKey(rooms, ada, { name: 'K', scopes: ['data:read'] })
    })

    test('a manager can see and end the grants of members in the team, and the grants of a member who leaves end', async () => {
      await using rooms = await openRooms(source)
      const ada = await someone(rooms, 'ada@example.test')
      const bo = await someone(rooms, 'bo@example.test')
      const [team, other] = [await teamOf(rooms, ada, 'A'), await teamOf(rooms, ada, 'B')]
      await join(rooms, ada, team, bo, 'bo@example.test')
      await join(rooms, ada, other, bo, 'bo@example.test')
      const [open, hidden] = [await someDatasource(rooms, team), await someDatasource(rooms, other)]
      const both = await grant(rooms, bo, [team, other], { datasourceIds: [open, hidden] })
      const elsewhere = await grant(rooms, bo, [other])
      const at = await requireMembership(rooms, ada, team)
      const shown = await listTeamGrants(rooms, at)
      // A manager of one team does not see the other team.
      assert.deepEqual(
        shown.map(({ id, email, teamIds, datasourceIds }) => ({ id, email, teamIds, datasourceIds })),
        [{ id: both, email: 'bo@example.test', teamIds: [team], datasourceIds: [open] }],
      )
      assert.equal(await codeOf(endTeamForGrant(rooms, ada, at, elsewhere)), 'NOT_FOUND')
      await endTeamForGrant(rooms, { ...ada, action: 'endTeamForGrant' }, at, both)
      assert.deepEqual(await listTeamGrants(rooms, at), [])
      assert.equal(await codeOf(endTeamForGrant(rooms, ada, at, both)), 'NOT_FOUND')
      assert.deepEqual((await audited(rooms)).at(-1), {
        action: 'endTeamForGrant',
        name: 'Agent',
        id: both,
        changes: { endedForTeams: { added: [team], removed: [] } },
      })
      const owners = await grant(rooms, ada, [team])
      await rooms.store.write((tx) =>
        tx.updateTable('memberships').set({ role: 'ADMIN' }).where('account_id', '=', bo.caller.accountId).execute(),
      )
      const byBo = await requireMembership(rooms, bo, team)
      assert.equal(await codeOf(endTeamForGrant(rooms, bo, byBo, owners)), 'ROLE_REQUIRED')

      await leaveTeam(rooms, bo, await requireMembership(rooms, bo, other))
      await join(rooms, ada, other, bo, 'bo@example.test')
      assert.deepEqual(await listTeamGrants(rooms, await requireMembership(rooms, ada, other)), [])
    })

    test('a changed password ends all grants, and a password reset by link ends the grants that the person does not keep', async () => {
      await using smtp = await startSmtp()
      await using rooms = await openRooms(source, { SMTP_URL: smtp.url })
      const email = 'ada@example.test'
      const signUp = { name: 'Ada', email, password: PASSWORD }
      await auth(rooms, 'POST sign-up/email', signUp)
      await rooms.store.write((tx) =>
        tx
          .updateTable('accounts')
          .set({ emailVerified: storedFlag(dialect, true) })
          .execute(),
      )
      const { json } = await auth(rooms, 'POST sign-in/email', { email, password: PASSWORD })
      const ada = callOf(rooms, json.user.id)
      const team = await teamOf(rooms, ada, 'A')
      const kept = await grant(rooms, ada, [team])
      const lost = await grant(rooms, ada, [team], { clientName: 'Other' })
      for (const id of [kept, lost]) await addToken(rooms, ada.caller.accountId, id)

      await auth(rooms, 'POST request-password-reset', { email, redirectTo: '/auth/reset-password' })
      const letter = await smtp.next(email, /reset-password/)
      const token = /token=([\w-]+)/.exec(letter.text)?.[1]
      const held = (await auth(rooms, 'POST reset-password/preview', { token })).json
      assert.deepEqual(
        held.grants.map(({ id, clientName, clientHost }: Record<string, string>) => ({ id, clientName, clientHost })),
        [
          { id: kept, clientName: 'Agent', clientHost: 'agent.example' },
          { id: lost, clientName: 'Other', clientHost: 'agent.example' },
        ],
      )
      const reset = (keep: object) =>
        auth(rooms, 'POST reset-password', { token, newPassword: 'another long password', keep })
      assert.equal(await codeOf(reset({ grantIds: [newId()] })), 'INVALID_REQUEST')
      const done = (await reset({ grantIds: [kept] })).json
      assert.deepEqual(
        [done.ended.grants, done.kept.grants],
        [
          [{ id: lost, clientName: 'Other', clientHost: 'agent.example' }],
          [{ id: kept, clientName: 'Agent', clientHost: 'agent.example' }],
        ],
      )
      await until('the deletion', async () => (await tokensOf(rooms)).length === 1)
      assert.deepEqual(await tokensOf(rooms), [kept])

      const again = await auth(rooms, 'POST sign-in/email', { email, password: 'another long password' })
      const change = { currentPassword: 'another long password', newPassword: PASSWORD, revokeOtherSessions: false }
      await auth(rooms, 'POST change-password', change, { cookie: again.cookie })
      assert.deepEqual(await listGrants(rooms, ada), [])
      await until('the deletion', async () => (await tokensOf(rooms)).length === 0)
      await rooms.audit.flush()
      const row = await rooms.store.db
        .selectFrom('audit')
        .select('detail')
        .where('action', '=', 'endGrants')
        .executeTakeFirstOrThrow()
      assert.deepEqual(JSON.parse(row.detail ?? '{}').changes, { grants: { added: [], removed: ['Agent'] } })
    })
  })
}
