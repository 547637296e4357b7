// Tests that a list of datasources reads no catalog, and that counts of an older store are made one at a time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { callOf, openRooms, someDatasource, someone, type Rooms } from '../../test/support/people.ts'
import { DIALECTS, storeSource } from '../../test/support/stores.ts'
import { turnsDuring } from '../../test/support/turns-during.ts'
import { until } from '../../test/support/until.ts'
import type { Call } from '../auth/caller.ts'
import { openCatalogs } from '../exposure/catalog-cache.ts'
import { putExposure } from '../exposure/exposure.ts'
import { writeCatalog } from '../exposure/stored-json.ts'
import { asId, type TeamId } from '../ids.ts'
import { requireMembership, type Membership } from '../teams/require-membership.ts'
import { createTeam } from '../teams/teams.ts'
import { listDatasources } from './datasources.ts'
import { reach } from './require-reach.ts'

const COUNT = 20

/** A team with datasources of three tables, of which two are exposed and one was added later. */
async function shop(rooms: Rooms): Promise<{ readonly call: Call; readonly membership: Membership }> {
  const person = await someone(rooms, 'ada@example.test')
  const call = callOf(rooms, person.caller.accountId)
  const teamId = asId<TeamId>((await createTeam(rooms, call, { name: 'Shop' })).id)
  const texts = await Promise.all([catalogOf('a', 'b'), catalogOf('a', 'b', 'c')])
  for (let n = 0; n < COUNT; n++) {
    const id = await someDatasource(rooms, teamId)
    for (const [before, catalog] of texts.entries()) {
      const version = before + 1
      await rooms.store.write(async (tx) => {
        const row = { datasource_id: id, version, captured_at: CAPTURED, catalog, connection_version: 1 }
        await tx.insertInto('catalogs').values(row).execute()
        await tx.updateTable('datasources').set({ catalog_version: version }).where('id', '=', id).execute()
      })
      if (before > 0) continue
      const tables = ['a', 'b'].map((table) => ({ schema: 'public', table, columns: null }))
      await putExposure(
        { ...rooms, withdrawHidden: async () => undefined },
        call,
        await reach(rooms, call, teamId, id),
        {
          tables,
        },
      )
    }
  }
  return { call, membership: await requireMembership(rooms, call, teamId) }
}

const CAPTURED = '2026-01-01T00:00:00.000Z'

function catalogOf(...names: readonly string[]): Promise<string> {
  const kind = { type: 'text', nullable: true, primaryKey: false, references: null, description: null }
  const columns = [{ name: 'x', ...kind, unexposable: null, detail: null }]
  const about = { schema: 'public', kind: 'table', description: null, estimatedRows: null, warnings: [] }
  const tables = names.map((table) => ({ ...about, table, columns, columnsRestricted: false, detail: null }))
  return writeCatalog({ capturedAt: CAPTURED, capture: null, tables })
}

/** As after a restart: nothing is in memory. */
const fresh = (rooms: Rooms): Rooms => ({ ...rooms, catalogs: openCatalogs(rooms) })

async function countsIn(rooms: Rooms, call: Call, membership: Membership): Promise<readonly unknown[]> {
  const items = await listDatasources(rooms, call, membership)
  return items.map((item) => {
    assert.ok('tableCount' in item)
    return [item.tableCount, item.exposedTableCount, item.driftCount, item.schemaCapturedAt]
  })
}

for (const dialect of DIALECTS) {
  test(`on ${dialect}, a list of datasources reads no catalog, and counts of an older store are made one at a time`, async () => {
    await using source = await storeSource(dialect)
    await using rooms = await openRooms(source)
    const { call, membership } = await shop(rooms)
    const expected = Array.from({ length: COUNT }, () => [3, 2, 1, CAPTURED])
    let counts: readonly unknown[] = []
    const turns = await turnsDuring(async () => void (counts = await countsIn(fresh(rooms), call, membership)))
    assert.deepEqual(counts, expected)
    assert.ok(turns >= COUNT, `${turns} turns`)
    // Now no catalog can be read.
    const stored = rooms.store.db.selectFrom('catalog_counts').select('drift').where('catalog_version', '=', 2)
    await until('the counts are stored', async () => (await stored.execute()).length === COUNT)
    await rooms.store.write((tx) => tx.updateTable('catalogs').set({ catalog: 'not JSON' }).execute())
    assert.deepEqual(await countsIn(fresh(rooms), call, membership), expected)
  })

  test(`on ${dialect}, a save of an exposure stores the counts for lists`, async () => {
    await using source = await storeSource(dialect)
    await using rooms = await openRooms(source)
    const { call, membership } = await shop(rooms)
    await rooms.store.write(async (tx) => {
      await tx.updateTable('datasources').set({ catalog_version: 1 }).execute()
      await tx.updateTable('catalogs').set({ catalog: 'not JSON' }).execute()
    })
    const expected = Array.from({ length: COUNT }, () => [2, 2, 0, CAPTURED])
    assert.deepEqual(await countsIn(fresh(rooms), call, membership), expected)
  })

  test(`on ${dialect}, a start counts the catalogs of an older store, and damaged ones do not prevent it`, async () => {
    await using source = await storeSource(dialect)
    const config = await source.config()
    const place = { config: async () => config }
    await using older = await openRooms(place)
    const { call, membership } = await shop(older)
    await older.store.write((tx) => tx.deleteFrom('catalog_counts').execute())
    const damaged = await older.store.db.selectFrom('datasources').select('id').executeTakeFirstOrThrow()
    const damage = (rooms: Rooms, sign: '=' | '!=') =>
      rooms.store.write((tx) =>
        tx.updateTable('catalogs').set({ catalog: 'not JSON' }).where('datasource_id', sign, damaged.id).execute(),
      )
    await damage(older, '=')
    await older[Symbol.asyncDispose]()
    await using rooms = await openRooms(place)
    await damage(rooms, '!=')
    const rest = await rooms.store.db.selectFrom('datasources').selectAll().where('id', '!=', damaged.id).execute()
    const [first, ...others] = await fresh(rooms).catalogs.counts(rest)
    assert.deepEqual(first, { capturedAt: CAPTURED, tableCount: 3, exposedTableCount: 2, driftCount: 1 })
    assert.equal(others.length, COUNT - 2)
    await assert.rejects(listDatasources(rooms, call, membership), { name: 'SyntaxError' })
  })
}
