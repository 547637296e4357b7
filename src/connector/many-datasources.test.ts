// Tests that the tools and resources of the connector read a bounded number of an account's datasources at once.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keyCall } from '../../test/support/connected.ts'
import { callOf, openRooms, someone } from '../../test/support/people.ts'
import { datasourceRow } from '../../test/support/rows.ts'
import { storeSource } from '../../test/support/stores.ts'
import type { Arrival } from '../auth/caller.ts'
import { sharedDepsOf } from '../composition-root.ts'
import { asId, type TeamId } from '../ids.ts'
import { openOperations } from '../operations/all-operations.ts'
import type { Operations } from '../operations/order-of-checks.ts'
import { createTeam } from '../teams/teams.ts'
import { listDatasources } from './account-tools.ts'
import { listResources } from './resources.ts'

interface World extends AsyncDisposable {
  readonly operations: Operations
  readonly arrival: Arrival
  /** The names of the teams whose datasources were listed. */
  readonly listed: string[]
  readonly teamIds: readonly TeamId[]
}

/** An account with teams that have this many datasources. */
async function world(counts: readonly number[]): Promise<World> {
  await using opened = new AsyncDisposableStack()
  const source = opened.use(await storeSource('sqlite'))
  const rooms = opened.use(await openRooms(source))
  const { accountId } = (await someone(rooms, 'ada@example.test')).caller
  const names = new Map<string, string>()
  for (const [n, count] of counts.entries()) {
    rooms.clock.at++
    const teamId = asId<TeamId>((await createTeam(rooms, callOf(rooms, accountId), { name: `team ${n}` })).id)
    names.set(teamId, `team ${n}`)
    const rows = Array.from({ length: count }, (_, k) => datasourceRow(teamId, { name: `${n} ${k}` }))
    if (count > 0) await rooms.store.write((tx) => tx.insertInto('datasources').values(rows).execute())
  }
  const operations = openOperations(sharedDepsOf(rooms), rooms)
  const listed: string[] = []
  const resources = opened.move()
  return {
    operations: {
      ...operations,
      listDatasources: (arrival, input) => {
        listed.push(names.get(input.params?.['teamId'] ?? '') ?? '')
        return operations.listDatasources(arrival, input)
      },
    },
    arrival: { ...keyCall(accountId, ''), knownAt: performance.now(), via: 'CONNECTOR' },
    listed,
    teamIds: [...names.keys()].map((id) => asId<TeamId>(id)),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

test('list_datasources stops after 500 datasources, and says how to list the others', async () => {
  await using shop = await world([300, 0, 300, 5, 5])
  const { operations, arrival, teamIds } = shop
  const all = await listDatasources(operations, arrival, {})
  assert.ok(Array.isArray(all['datasources']))
  assert.equal(all['datasources'].length, 600)
  assert.equal(
    all['note'],
    'There are more datasources in other teams. To list the datasources of one team, give its teamId. list_teams has the ids.',
  )
  // One more team shows that there are more datasources.
  assert.deepEqual(shop.listed, ['team 0', 'team 1', 'team 2', 'team 3'])
  const last = await listDatasources(operations, arrival, { teamId: teamIds[4] ?? '' })
  assert.ok(Array.isArray(last['datasources']))
  assert.deepEqual([last['datasources'].length, last['note']], [5, undefined])
})

test('list_datasources has no note if it lists all datasources', async () => {
  await using shop = await world([500, 0])
  const all = await listDatasources(shop.operations, shop.arrival, {})
  assert.deepEqual(Object.keys(all), ['datasources'])
})

test('a page of resources lists only the teams whose datasources it describes', async () => {
  await using shop = await world([3, 0, 12, 4, 4])
  const { operations, arrival } = shop
  const pages: string[][] = []
  let cursor: string | undefined
  do {
    const page = await listResources(operations, arrival, cursor)
    pages.push(shop.listed.splice(0))
    cursor = page.nextCursor
  } while (cursor !== undefined)
  assert.deepEqual(pages, [['team 0', 'team 1', 'team 2'], ['team 2', 'team 3', 'team 4'], ['team 4']])
})
