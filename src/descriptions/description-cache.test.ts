import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openRooms, type Rooms } from '../../test/support/connected.ts'
import { startPostgres, type TestPostgres } from '../../test/support/postgres.ts'
import { Profiled, withProfiles } from '../../test/support/profiled-datasource.ts'
import { DIALECTS, storeSource, type StoreConfig, type StoreSource } from '../../test/support/stores.ts'
import { openCatalogs } from '../exposure/catalog-cache.ts'
import { forgetPersonal } from '../profiles/stored-profiles.ts'
import { openDescriptions, versionsOf, type Descriptions } from './description-cache.ts'
import type { Part } from './render-description.ts'
import { introspectDatasource } from '../introspection/introspect-job.ts'

const SQL = `
CREATE TABLE people (id int PRIMARY KEY, town text, canary_town text);
INSERT INTO people SELECT n, 'town ' || n % 3, 'canary ' || n % 3 FROM generate_series(1, 60) n;
CREATE TABLE towns (id int PRIMARY KEY, label text);`

const SHOWN = [
  { schema: 'public', table: 'people', columns: ['id', 'town', 'canary_town'] },
  { schema: 'public', table: 'towns', columns: null },
]
const HIDDEN = [{ schema: 'public', table: 'people', columns: ['id', 'town'] }]

for (const dialect of DIALECTS) {
  describe(`cached descriptions, with the store on ${dialect}`, () => {
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

    const fresh = (): Descriptions => openDescriptions({ ...rooms, catalogs: openCatalogs(rooms) })
    const text = async (part: Part) => (await rooms.descriptions.of(await at.at(), part)).json.toString()

    test('after a change, both descriptions are rendered again, and the exposed one has no hidden columns', async () => {
      await at.expose(SHOWN)
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
      ]
      for (const [what, change] of changes) {
        await Promise.all([text('e'), text('f')])
        const before = versionsOf((await at.at()).row)
        await change()
        const row = (await at.at()).row
        assert.notEqual(versionsOf(row), before, what)
        for (const part of ['e', 'f'] as const) {
          assert.equal(await text(part), (await fresh().of(await at.at(), part)).json.toString(), `${what}, ${part}`)
        }
      }
      assert.ok(!(await text('e')).includes('canary'), 'the exposed part shows nothing of a hidden column')
    })

    test('a cached description is not rendered again if a change does not affect it', async () => {
      const before = await rooms.descriptions.of(await at.at(), 'e')
      await rooms.store.write((tx) => tx.updateTable('datasources').set({ min_role: 'OWNER' }).execute())
      assert.equal(await rooms.descriptions.of(await at.at(), 'e'), before)
    })

    test('concurrent readers of a description share one rendering', async () => {
      const descriptions = fresh()
      const now = await at.at()
      const all = await Promise.all(Array.from({ length: 5 }, () => descriptions.of(now, 'e')))
      assert.equal(new Set(all).size, 1)
    })

    test('a reader with an older datasource row gets the description of that version, and the next reader the newest description', async () => {
      await at.expose(SHOWN)
      const old = await at.at()
      await at.expose(HIDDEN)
      assert.ok((await rooms.descriptions.of(old, 'e')).json.includes('canary_town'))
      assert.ok(!(await text('e')).includes('canary_town'))
    })

    test('a column that was hidden and is exposed again shows no values until the next profile', async () => {
      await at.expose(SHOWN)
      await at.profile()
      assert.notEqual(await at.stats('people', 'canary_town'), null)
      await at.expose(HIDDEN)
      await at.describe()
      await at.expose(SHOWN)
      assert.equal(await at.stats('people', 'canary_town'), null)
      assert.deepEqual((await fresh().of(await at.at(), 'e')).json, (await at.described()).json)
      await at.profile()
      assert.notEqual(await at.stats('people', 'canary_town'), null)
    })
  })
}
