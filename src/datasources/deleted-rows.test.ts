// Tests that a deleted team or datasource disappears at once, and that its rows are deleted a few at a time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { largestTurn } from '../../test/support/largest-turn.ts'
import { callOf, codeOf, openRooms, someDatasource, someone, type Rooms } from '../../test/support/people.ts'
import { DIALECTS, storeSource } from '../../test/support/stores.ts'
import { until } from '../../test/support/until.ts'
import type { Call } from '../auth/caller.ts'
import {
  asId,
  newId,
  type AccountId,
  type AuditId,
  type DatasourceId,
  type ExposureRequestId,
  type TeamId,
} from '../ids.ts'
import { storedFlag } from '../store/better-auth-booleans.ts'
import { storedTime } from '../store/better-auth-times.ts'
import { ROWS_A_PORTION } from '../store/delete-in-portions.ts'
import { hideDatasource, hideTeam } from '../store/delete-team.ts'
import { requireMembership } from '../teams/require-membership.ts'
import { createTeam, deleteTeam } from '../teams/teams.ts'
import { deleteDatasource, listDatasources } from './datasources.ts'
import { reach } from './require-reach.ts'

const VERSIONS = 100

/** A team with a datasource that has many versions of its exposure. */
async function shopOf(
  rooms: Rooms,
  name = 'ada',
): Promise<{ readonly call: Call; readonly teamId: TeamId; readonly id: DatasourceId }> {
  const person = await someone(rooms, `${name}@example.test`)
  const call = callOf(rooms, person.caller.accountId)
  const teamId = asId<TeamId>((await createTeam(rooms, call, { name: 'Shop' })).id)
  const id = await someDatasource(rooms, teamId)
  const rows = Array.from({ length: VERSIONS }, (_, n) => ({
    ...{ datasource_id: id, version: n + 1, tables: '[]', author_id: person.caller.accountId },
    ...{ created_at: new Date(0).toISOString(), catalog_version: null },
  }))
  await rooms.store.write(async (tx) => {
    await tx.insertInto('exposures').values(rows).execute()
    await tx.insertInto('access_entries').values({ datasource_id: id, account_id: person.caller.accountId }).execute()
    await tx.insertInto('datasource_secrets').values({ datasource_id: id, field: 'password', sealed: 'x' }).execute()
  })
  return { call, teamId, id }
}

/** Adds more rows than one turn may delete. Each entry is of another account. */
async function addEntriesAndRequests(rooms: Rooms, teamId: TeamId, id: DatasourceId): Promise<void> {
  const { accountId } = (await someone(rooms, 'many@example.test')).caller
  const at = storedTime(rooms.store.dialect, 0)
  await rooms.store.write(async (tx) => {
    for (let n = 0; n < 4; n++) {
      const accounts = Array.from({ length: 300 }, () => newId<AccountId>())
      await tx
        .insertInto('accounts')
        .values(
          accounts.map((account) => ({
            ...{ id: account, name: 'x', email: `${account}@example.test`, image: null, createdAt: at, updatedAt: at },
            emailVerified: storedFlag(rooms.store.dialect, true),
          })),
        )
        .execute()
      const entries = accounts.map((account_id) => ({ datasource_id: id, account_id }))
      await tx.insertInto('access_entries').values(entries).execute()
      const requests = Array.from({ length: 50 }, () => ({
        ...{ id: newId<ExposureRequestId>(), team_id: teamId, datasource_id: id, account_id: accountId },
        ...{ audit_id: newId<AuditId>(), why: 'x', blocked: '{}', created_at: new Date(0).toISOString() },
        ...{ closed_at: null, closed_by: null, resolution: null, note: null },
      }))
      await tx.insertInto('exposure_requests').values(requests).execute()
    }
  })
}

async function countOf(
  rooms: Rooms,
  table: 'exposures' | 'exposure_requests' | 'access_entries' | 'datasources' | 'datasource_secrets' | 'teams',
): Promise<number> {
  const { rows } = await rooms.store.db
    .selectFrom(table)
    .select(({ fn }) => fn.countAll<number>().as('rows'))
    .executeTakeFirstOrThrow()
  return Number(rows)
}

const removed = (rooms: Rooms, teams: number) =>
  until('the rows are deleted', async () => (await countOf(rooms, 'teams')) === teams)

for (const dialect of DIALECTS) {
  test(`on ${dialect}, a deleted datasource disappears at once, and then its rows are deleted a few at a time`, async () => {
    await using source = await storeSource(dialect)
    await using rooms = await openRooms(source)
    const { call, teamId, id } = await shopOf(rooms)
    const at = await reach(rooms, call, teamId, id)
    const most = await largestTurn(
      () => countOf(rooms, 'exposures'),
      async () => {
        await deleteDatasource(rooms, call, at)
        assert.equal(await countOf(rooms, 'datasource_secrets'), 0)
        assert.equal(await codeOf(reach(rooms, call, teamId, id)), 'NOT_FOUND')
        assert.deepEqual(await listDatasources(rooms, call, at.membership), [])
        assert.equal(await codeOf(deleteDatasource(rooms, call, at)), 'NOT_FOUND')
        await removed(rooms, 1)
      },
    )
    assert.deepEqual([await countOf(rooms, 'exposures'), await countOf(rooms, 'datasources')], [0, 0])
    if (dialect === 'sqlite') assert.ok(most < VERSIONS / 2, `${most} rows in one turn`)
  })

  test(`on ${dialect}, a deleted team disappears at once, and then its rows are deleted a few at a time`, async () => {
    await using source = await storeSource(dialect)
    await using rooms = await openRooms(source)
    const { call, teamId } = await shopOf(rooms)
    const membership = await requireMembership(rooms, call, teamId)
    const most = await largestTurn(
      () => countOf(rooms, 'exposures'),
      async () => {
        await deleteTeam(rooms, call, membership, { confirm: 'shop' })
        assert.equal(await countOf(rooms, 'datasource_secrets'), 0)
        assert.equal(await codeOf(requireMembership(rooms, call, teamId)), 'NOT_FOUND')
        assert.equal((await createTeam(rooms, call, { name: 'Shop' })).slug, 'shop')
        await removed(rooms, 1)
      },
    )
    assert.deepEqual([await countOf(rooms, 'exposures'), await countOf(rooms, 'datasources')], [0, 0])
    if (dialect === 'sqlite') assert.ok(most < VERSIONS / 2, `${most} rows in one turn`)
  })

  test(`on ${dialect}, the access list and requests of a deleted team are deleted a few at a time`, async () => {
    await using source = await storeSource(dialect)
    await using rooms = await openRooms(source)
    const { call, teamId, id } = await shopOf(rooms)
    await addEntriesAndRequests(rooms, teamId, id)
    const membership = await requireMembership(rooms, call, teamId)
    const left = async () => (await countOf(rooms, 'access_entries')) + (await countOf(rooms, 'exposure_requests'))
    const most = await largestTurn(left, async () => {
      await deleteTeam(rooms, call, membership, { confirm: 'shop' })
      await removed(rooms, 0)
    })
    assert.equal(await left(), 0)
    if (dialect === 'sqlite') assert.ok(most <= ROWS_A_PORTION + 50, `${most} rows in one turn`)
  })

  test(`on ${dialect}, other requests run between the datasources of a deleted team`, async () => {
    await using source = await storeSource(dialect)
    await using rooms = await openRooms(source)
    const { call, teamId } = await shopOf(rooms)
    for (let n = 0; n < 20; n++) await someDatasource(rooms, teamId)
    const membership = await requireMembership(rooms, call, teamId)
    const most = await largestTurn(
      () => countOf(rooms, 'datasources'),
      async () => {
        await deleteTeam(rooms, call, membership, { confirm: 'shop' })
        await removed(rooms, 0)
      },
    )
    if (dialect === 'sqlite') assert.equal(most, 1)
  })

  test(`on ${dialect}, the next start deletes the rows that a process left`, async () => {
    await using source = await storeSource(dialect)
    const config = await source.config()
    const again = { config: async () => config }
    {
      await using rooms = await openRooms(again)
      const [one, other] = [await shopOf(rooms, 'ada'), await shopOf(rooms, 'bo')]
      await rooms.store.write(async (tx) => {
        await hideDatasource(tx, one.id)
        await hideTeam(tx, other.teamId)
      })
      assert.equal(await countOf(rooms, 'exposures'), 2 * VERSIONS)
    }
    await using rooms = await openRooms(again)
    await removed(rooms, 1)
    assert.deepEqual([await countOf(rooms, 'exposures'), await countOf(rooms, 'datasources')], [0, 0])
  })
}
