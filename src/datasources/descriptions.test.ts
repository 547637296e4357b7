// Written descriptions on both stores: what of one is kept, when it goes, and what is written ahead.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { inflateRawSync } from 'node:zlib'
import { openRooms, type Rooms } from '../../test/support/connected.ts'
import { startPostgres, type TestPostgres } from '../../test/support/postgres.ts'
import { Profiled, withProfiles } from '../../test/support/profiled.ts'
import { storeSource, type StoreConfig, type StoreSource } from '../../test/support/stores.ts'
import { openCatalogs } from '../exposure/catalogs.ts'
import { forgetPersonal } from '../profiles/stored.ts'
import type { DialectName } from '../store/migrate.ts'
import { openDescriptions, type Descriptions } from './descriptions.ts'
import { introspectDatasource } from './introspect.ts'
import { versionsOf } from './kept.ts'

const SQL = `
CREATE TABLE people (id int PRIMARY KEY, town text, canary_town text);
INSERT INTO people SELECT n, 'town ' || n % 3, 'canary ' || n % 3 FROM generate_series(1, 60) n;
CREATE TABLE towns (id int PRIMARY KEY, label text);`

const SHOWN = [
  { schema: 'public', table: 'people', columns: ['id', 'town', 'canary_town'] },
  { schema: 'public', table: 'towns', columns: null },
]
const HIDDEN = [{ schema: 'public', table: 'people', columns: ['id', 'town'] }]

for (const dialect of ['sqlite', 'postgres'] as const satisfies readonly DialectName[]) {
  describe(`written descriptions, with the store on ${dialect}`, () => {
    let postgres: TestPostgres
    let source: StoreSource
    let config: StoreConfig
    let rooms: Rooms
    let at: Profiled

    before(async () => {
      postgres = await startPostgres()
      source = await storeSource(dialect)
      config = await source.config()
      rooms = await openRooms({ at: config })
      withProfiles(rooms)
      const { host, port, superuser: username, password } = postgres
      const database = await postgres.createDatabase('people', SQL)
      at = await Profiled.connect(rooms, { host, port, username, password, database }, SHOWN)
    })
    after(async () => {
      await rooms[Symbol.asyncDispose]()
      await source[Symbol.asyncDispose]()
      await postgres[Symbol.asyncDispose]()
    })

    const kept = () => rooms.store.db.selectFrom('descriptions').selectAll().orderBy('part').execute()
    const texts = async () => (await kept()).map(({ packed }) => inflateRawSync(packed).toString())
    const fresh = (over: Rooms = rooms): Descriptions => openDescriptions({ ...over, catalogs: openCatalogs(over) })

    /** Both parts, kept when it is answered. */
    async function describeBoth(): Promise<void> {
      await using descriptions = fresh()
      const now = await at.at()
      await Promise.all([descriptions.of(now, 'e'), descriptions.of(now, 'f')])
    }

    test('a change removes what was kept, together with what it hides', async () => {
      await at.profile()
      const call = at.call()
      const changes: readonly (readonly [string, () => Promise<unknown>])[] = [
        ['an exposure', () => at.expose(HIDDEN)],
        ['a profile', () => at.profile()],
        ['an introspection', async () => introspectDatasource(rooms, call, await at.at())],
        [
          'a mark',
          () => rooms.store.write((tx) => forgetPersonal(tx, at.id, { schema: 'public', table: 'people' }, ['town'])),
        ],
        ['a name', () => rooms.store.write((tx) => tx.updateTable('datasources').set({ name: 'other' }).execute())],
        [
          'a publication',
          () => rooms.store.write((tx) => tx.updateTable('datasources').set({ published_version: 7 }).execute()),
        ],
      ]
      await at.expose(SHOWN)
      await at.profile()
      for (const [what, change] of changes) {
        await describeBoth()
        const before = await kept()
        assert.deepEqual(
          [before.map((row) => row.part), before.every(({ versions }) => versions === before[0]?.versions)],
          [['e', 'f'], true],
        )
        await change()
        const now = versionsOf((await at.at()).row)
        assert.notEqual(before[0]?.versions, now, what)
        assert.ok(
          (await kept()).every(({ versions }) => versions === now),
          what,
        )
      }
      await describeBoth()
      assert.ok(!(await texts())[0]?.includes('canary'), 'nothing of a hidden column is kept of what is exposed')
    })

    test('a change that leaves it as it is leaves it kept', async () => {
      await describeBoth()
      const before = await kept()
      await rooms.store.write((tx) => tx.updateTable('datasources').set({ min_role: 'OWNER' }).execute())
      assert.deepEqual(await kept(), before)
    })

    test('what is written of older versions than stand is answered to who asked, and not kept', async () => {
      await at.expose(SHOWN)
      const old = await at.at()
      await at.expose(HIDDEN)
      await using descriptions = fresh()
      const { json } = await descriptions.of(old, 'e')
      assert.ok(json.includes('canary_town'), 'it is what that row stands for')
      await descriptions[Symbol.asyncDispose]()
      assert.deepEqual(await kept(), [])
      const [now, before] = [await fresh().of(await at.at(), 'e'), await at.described()]
      assert.ok(!now.json.includes('canary_town'))
      assert.deepEqual(now.json, before.json)
    })

    test('of changes and descriptions at once, only what stands in the end is kept', async () => {
      // On PostgreSQL a second process describes.
      const other = dialect === 'postgres' ? await openRooms({ at: config }) : rooms
      const elsewhere = Profiled.again(other, at)
      try {
        for (let n = 0; n < 12; n++) {
          await using descriptions = fresh(other)
          const now = await elsewhere.at()
          await Promise.all([
            at.expose(n % 2 === 0 ? SHOWN : HIDDEN),
            descriptions.of(now, 'e'),
            descriptions.of(now, 'f'),
            descriptions.ahead(at.id),
          ])
          await descriptions[Symbol.asyncDispose]()
          const stands = versionsOf((await at.at()).row)
          assert.ok((await kept()).every(({ versions }) => versions === stands))
        }
      } finally {
        if (other !== rooms) await other[Symbol.asyncDispose]()
      }
    })

    test('of many changes in a row few are written ahead, and the last one is', async () => {
      await using descriptions = fresh()
      const all: Promise<void>[] = []
      for (let n = 0; n < 30; n++) all.push(descriptions.ahead(at.id))
      assert.equal(new Set(all).size, 1, 'those that wait are one')
      await Promise.all(all)
      await at.expose(SHOWN)
      await descriptions.ahead(at.id)
      await descriptions[Symbol.asyncDispose]()
      assert.deepEqual(
        (await kept()).map(({ part, versions }) => [part, versions]),
        [['e', versionsOf((await at.at()).row)]],
      )
      await descriptions.ahead(at.id)
    })

    test('a column that was hidden and is shown again tells nothing of its values before the next profile', async () => {
      await at.expose(SHOWN)
      await at.profile()
      assert.notEqual(await at.stats('people', 'canary_town'), null)
      await at.expose(HIDDEN)
      await at.describe()
      await at.expose(SHOWN)
      assert.equal(await at.stats('people', 'canary_town'), null)
      assert.deepEqual((await fresh().of(await at.at(), 'e')).json, (await at.described()).json)
    })
  })
}
