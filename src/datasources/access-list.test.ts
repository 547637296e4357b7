// Tests how many rows of access lists are read and written.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KyselyPlugin } from 'kysely'
import { openRooms, someDatasource, someone, type Rooms } from '../../test/support/people.ts'
import { DIALECTS, storeSource } from '../../test/support/stores.ts'
import { turnsDuring } from '../../test/support/turns-during.ts'
import type { Call } from '../auth/caller.ts'
import { asId, newId, type AccountId, type DatasourceId, type TeamId } from '../ids.ts'
import { storedFlag } from '../store/better-auth-booleans.ts'
import { storedTime } from '../store/better-auth-times.ts'
import type { Store } from '../store/open.ts'
import { removeMember } from '../teams/memberships.ts'
import { requireMembership } from '../teams/require-membership.ts'
import { createTeam } from '../teams/teams.ts'
import { getAccess, putAccess } from './access-list.ts'
import { listDatasources } from './datasources.ts'
import { reach } from './require-reach.ts'

async function teamOf(rooms: Rooms): Promise<{ readonly call: Call; readonly teamId: TeamId }> {
  const call = await someone(rooms, 'ada@example.test')
  return { call, teamId: asId<TeamId>((await createTeam(rooms, call, { name: 'Shop' })).id) }
}

async function addMembers(rooms: Rooms, team_id: TeamId, count: number): Promise<readonly AccountId[]> {
  const at = storedTime(rooms.store.dialect, 0)
  const ids = Array.from({ length: count }, () => newId<AccountId>())
  await rooms.store.write(async (tx) => {
    for (let n = 0; n < count; n += 300) {
      const accounts = ids.slice(n, n + 300).map((id) => ({
        ...{ id, name: 'x', email: `${id}@example.test`, image: null, createdAt: at, updatedAt: at },
        emailVerified: storedFlag(rooms.store.dialect, true),
      }))
      await tx.insertInto('accounts').values(accounts).execute()
      const members = accounts.map(({ id }) => ({
        ...{ team_id, account_id: id, role: 'MEMBER' as const, status: 'ACTIVE' as const },
        created_at: new Date(0).toISOString(),
      }))
      await tx.insertInto('memberships').values(members).execute()
    }
  })
  return ids
}

/** Counts the statements about access lists, and the rows that they return. */
function counting(store: Store) {
  const counts = { statements: 0, rows: 0 }
  const ours = new WeakSet()
  const plugin: KyselyPlugin = {
    transformQuery({ node, queryId }) {
      if (JSON.stringify(node).includes('"access_entries"')) {
        ours.add(queryId)
        counts.statements++
      }
      return node
    },
    async transformResult({ result, queryId }) {
      if (ours.has(queryId)) counts.rows += result.rows.length
      return result
    },
  }
  const write: Store['write'] = (work) => store.write((tx) => work(tx.withPlugin(plugin)))
  return { counts, store: { ...store, db: store.db.withPlugin(plugin), write } }
}

for (const dialect of DIALECTS) {
  test(`on ${dialect}, a member's list of datasources reads only the member's own access`, async () => {
    await using source = await storeSource(dialect)
    await using rooms = await openRooms(source)
    const { teamId } = await teamOf(rooms)
    const members = await addMembers(rooms, teamId, 30)
    const ids = []
    for (let n = 0; n < 12; n++) ids.push(await someDatasource(rooms, teamId, { accessMode: 'EXPLICIT' }))
    const entries = ids.slice(0, 10).flatMap((datasource_id) => members.map((account_id) => ({ datasource_id, account_id }))) // prettier-ignore
    await rooms.store.write((tx) => tx.insertInto('access_entries').values(entries).execute())
    const accountId = members[0] ?? assert.fail()
    const call: Call = { ...(await someone(rooms, 'x@example.test')), action: 'listDatasources' }
    const mine: Call = { ...call, caller: { ...call.caller, accountId } }
    const membership = await requireMembership(rooms, mine, teamId)
    const { counts, store } = counting(rooms.store)
    const listed = await listDatasources({ ...rooms, store }, mine, membership)
    assert.deepEqual(new Set(listed.map(({ id }) => id)), new Set<string>(ids.slice(0, 10)))
    assert.deepEqual(counts, { statements: 1, rows: 10 })
    await reach({ ...rooms, store }, mine, teamId, ids[0] ?? assert.fail())
    assert.deepEqual(counts, { statements: 2, rows: 11 })
  })

  test(`on ${dialect}, a new access list is written in few statements, and only what differs`, async () => {
    await using source = await storeSource(dialect)
    await using rooms = await openRooms(source)
    const { call, teamId } = await teamOf(rooms)
    const members = await addMembers(rooms, teamId, 1_200)
    const at = await reach(rooms, call, teamId, await someDatasource(rooms, teamId, { accessMode: 'EXPLICIT' }))
    const put = async (accountIds: readonly AccountId[]) => {
      const { counts, store } = counting(rooms.store)
      await putAccess({ ...rooms, store }, call, at, { accountIds })
      assert.deepEqual((await getAccess(rooms, at.id)).accountIds.toSorted(), accountIds.toSorted())
      return counts.statements
    }
    // One statement reads the list.
    assert.equal(await put(members), 1 + 3)
    assert.equal(await put(members), 1)
    assert.equal(await put(members.slice(1)), 1 + 1)
    assert.equal(await put(members.slice(0, 1)), 1 + 3 + 1)
    const { items } = await rooms.audit.page(teamId, { limit: 1, filter: { actions: [call.action] } })
    assert.equal(items.length, 1)
  })
}

test('other requests run while a member is removed from many access lists', async () => {
  await using source = await storeSource('sqlite')
  await using rooms = await openRooms(source)
  const { call, teamId } = await teamOf(rooms)
  const [accountId = assert.fail(), other = assert.fail()] = await addMembers(rooms, teamId, 2)
  const ids: DatasourceId[] = []
  for (let n = 0; n < 200; n++) ids.push(await someDatasource(rooms, teamId, { accessMode: 'EXPLICIT' }))
  const entries = [accountId, other].flatMap((account_id) =>
    ids.map((datasource_id) => ({ datasource_id, account_id })),
  )
  for (const half of [entries.slice(0, 200), entries.slice(200)]) {
    await rooms.store.write((tx) => tx.insertInto('access_entries').values(half).execute())
  }
  const membership = await requireMembership(rooms, call, teamId)
  const turns = await turnsDuring(() => removeMember(rooms, call, membership, accountId))
  assert.ok(turns >= 4, `${turns} turns`)
  const left = await rooms.store.db.selectFrom('access_entries').select('account_id').distinct().execute()
  assert.deepEqual(
    left.map(({ account_id }) => account_id),
    [other],
  )
})
