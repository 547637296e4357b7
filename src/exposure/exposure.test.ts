import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import { after, before, describe, test } from 'node:test'
import { datasourceRow, teamRow } from '../../test/support/rows.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { openAudit, type Audit } from '../audit/audit.ts'
import type { Call } from '../auth/caller.ts'
import type { Catalog } from '../drivers/driver.ts'
import { newId, type AccountId, type DatasourceId, type SessionId, type TeamId } from '../ids.ts'
import { openStore, type Store } from '../store/open.ts'
import { openCatalogs, type Catalogs } from './catalog-cache.ts'
import { getExposure, listExposureVersions, putExposure, type ExposurePlace } from './exposure.ts'
import { writeCatalog } from './stored-json.ts'

const AT = '2026-01-01T00:00:00.000Z'
const call: Call = {
  caller: {
    kind: 'session',
    accountId: newId<AccountId>(),
    name: 'Ada',
    sessionId: newId<SessionId>(),
    signedInAt: AT,
  },
  action: 'putExposure',
  via: 'REST',
  signal: new AbortController().signal,
}
const names = (table: string, ...columns: string[]) => ({ schema: 'public', table, columns })
const catalogOf = (...tables: ReturnType<typeof names>[]): Catalog => ({
  capturedAt: AT,
  capture: null,
  tables: tables.map(({ schema, table, columns }) => ({
    schema,
    table,
    kind: 'table',
    description: null,
    estimatedRows: null,
    warnings: [],
    detail: null,
    columns: columns.map((name) => ({
      name,
      type: 'integer',
      nullable: true,
      primaryKey: false,
      references: null,
      description: null,
      unexposable: null,
      detail: null,
    })),
  })),
})

for (const dialect of DIALECTS) {
  describe(`the exposure on ${dialect}`, () => {
    let source: StoreSource
    let store: Store
    let audit: Audit
    let catalogs: Catalogs
    before(async () => {
      source = await storeSource(dialect)
      store = await openStore(await source.config())
      audit = openAudit({ store, key: new Uint8Array(32) })
      catalogs = openCatalogs({ store })
    })
    after(async () => {
      await audit[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
      await source[Symbol.asyncDispose]()
    })

    async function introspected(catalog: Catalog): Promise<DatasourceId> {
      const teamId = newId<TeamId>()
      const row = datasourceRow(teamId)
      await store.write(async (tx) => {
        await tx.insertInto('teams').values(teamRow(teamId)).execute()
        await tx.insertInto('datasources').values(row).execute()
      })
      const { id } = row
      await capture(id, 1, catalog)
      return id
    }
    async function capture(id: DatasourceId, version: number, catalog: Catalog): Promise<void> {
      const row = { datasource_id: id, version, captured_at: AT, catalog: await writeCatalog(catalog) }
      await store.write(async (tx) => {
        await tx.insertInto('catalogs').values(row).execute()
        await tx.updateTable('datasources').set({ catalog_version: version }).where('id', '=', id).execute()
      })
    }
    async function place(id: DatasourceId): Promise<ExposurePlace> {
      const row = await store.db.selectFrom('datasources').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
      return { id, teamId: row.team_id, row, driver: { typed: (names) => names.join('.') } }
    }
    const deps = () => ({ store, audit, catalogs, withdrawHidden: () => Promise.resolve() })

    test('a request with null saves the current columns, so a column that appears later stays hidden until the next save', async () => {
      const id = await introspected(catalogOf(names('a', 'x', 'y')))
      assert.deepEqual(await getExposure(deps(), await place(id)), {
        tables: [],
        version: 0,
        gone: [],
        author: null,
        savedAt: null,
        note: null,
      })
      const saved = await putExposure(deps(), call, await place(id), { tables: [{ ...names('a'), columns: null }] })
      assert.partialDeepStrictEqual(saved, { tables: [names('a', 'x', 'y')], version: 1, gone: [], warnings: [] })
      await capture(id, 2, catalogOf(names('a', 'x', 'new')))
      const at = await place(id)
      assert.deepEqual((await getExposure(deps(), at)).gone, [{ schema: 'public', table: 'a', column: 'y' }])
      assert.deepEqual(
        (await catalogs.exposed(at.row))?.tables[0]?.columns.map((column) => column.name),
        ['x'],
      )
      const again = await putExposure(deps(), call, at, { tables: [{ ...names('a'), columns: null }] })
      assert.deepEqual(again.tables, [names('a', 'x', 'new')])
    })

    test('callers get the same catalog object until something changes', async () => {
      const id = await introspected(catalogOf(names('a', 'x')))
      await putExposure(deps(), call, await place(id), { tables: [names('a', 'x')] })
      const first = await catalogs.exposed((await place(id)).row)
      assert.ok(first !== null && first === (await catalogs.exposed((await place(id)).row)))
      await putExposure(deps(), call, await place(id), { tables: [] })
      const next = await catalogs.exposed((await place(id)).row)
      assert.deepEqual([next === first, next?.tables], [false, []])
      assert.equal((await catalogs.counts([(await place(id)).row]))[0]?.exposedTableCount, 0)
    })

    test('saving an exposure with an outdated version is answered CONFLICT, and without a version the last writer wins', async () => {
      const id = await introspected(catalogOf(names('a', 'x', 'y')))
      const at = await place(id)
      const put = (column: string, version?: number) =>
        putExposure(deps(), call, at, { tables: [names('a', column)], ...(version !== undefined && { version }) })
      assert.equal((await put('x', 0)).version, 1)
      await assert.rejects(put('y', 0), { code: 'CONFLICT' })
      assert.equal((await put('y')).version, 2)
      assert.deepEqual((await getExposure(deps(), await place(id))).tables, [names('a', 'y')])
      const all = await Promise.all([put('x'), put('y'), put('x')])
      assert.deepEqual(all.map((it) => it.version).sort(), [3, 4, 5])
      const race = await Promise.allSettled([put('x', 5), put('y', 5)])
      assert.deepEqual(race.map((it) => it.status).sort(), ['fulfilled', 'rejected'])
    })

    test('if an exposure cannot be saved, nothing changes and the error names every reason', async () => {
      const id = await introspected(catalogOf(names('a', 'x')))
      const wrong = putExposure(deps(), call, await place(id), { tables: [names('a', 'x', 'q'), names('b', 'x')] })
      await assert.rejects(wrong, (error: { code?: string; extra?: { details?: string[] } }) => {
        assert.equal(error.code, 'INVALID_REQUEST')
        assert.equal(error.extra?.details?.length, 2)
        return true
      })
      assert.equal((await place(id)).row.exposure_version, 0)
    })

    test('the history of an exposure has every version with its author, newest first', async () => {
      const id = await introspected(catalogOf(names('a', 'x', 'y')))
      for (const column of ['x', 'y', 'x'])
        await putExposure(deps(), call, await place(id), { tables: [names('a', column)] })
      const first = await listExposureVersions(deps(), await place(id), { limit: 2 })
      const rest = await listExposureVersions(deps(), await place(id), { cursor: first.nextCursor ?? '' })
      const all = [...first.items, ...rest.items]
      assert.deepEqual(
        all.map((it) => [it.version, it.tables[0]?.columns]),
        [
          [3, ['x']],
          [2, ['y']],
          [1, ['x']],
        ],
      )
      for (const { author } of all) assert.deepEqual(author, { accountId: call.caller.accountId, name: null })
      assert.equal(rest.nextCursor, null)
      await assert.rejects(listExposureVersions(deps(), await place(id), { cursor: 'x' }), { code: 'INVALID_REQUEST' })
    })

    test('a page of the history of an exposure has a limited size, and only the newest thousand versions are kept', async () => {
      const id = await introspected(catalogOf(names('a', 'x')))
      const large = JSON.stringify([names('a', 'x'.repeat(5 << 20))])
      const row = { datasource_id: id, author_id: call.caller.accountId, created_at: AT }
      await store.write(async (tx) => {
        for (const version of [1, 998, 999, 1_000]) {
          const tables = version === 1 ? '[]' : large
          await tx
            .insertInto('exposures')
            .values({ ...row, version, tables })
            .execute()
        }
        await tx.updateTable('datasources').set({ exposure_version: 1_000 }).where('id', '=', id).execute()
      })
      const at = await place(id)
      const pages: number[][] = []
      let cursor: string | null = null
      do {
        const page = await listExposureVersions(deps(), at, { limit: 500, ...(cursor !== null && { cursor }) })
        pages.push(page.items.map((item) => item.version))
        cursor = page.nextCursor
      } while (cursor !== null)
      assert.deepEqual(pages, [[1_000], [999], [998, 1]])
      assert.equal((await putExposure(deps(), call, at, { tables: [] })).version, 1_001)
      const { items } = await listExposureVersions(deps(), at, { cursor: '998' })
      assert.deepEqual(items, [])
    })

    test('an exposure that is saved during an introspection belongs to the current catalog', async () => {
      const id = await introspected(catalogOf(names('a', 'x')))
      const [at, next] = [await place(id), catalogOf(names('a', 'x', 'y'))]
      const tables = [{ ...names('a'), columns: null }]
      const [saved] = await Promise.all([putExposure(deps(), call, at, { tables, version: 0 }), capture(id, 2, next)])
      assert.equal(saved.version, 1)
      const row = (await place(id)).row
      const baseline = await catalogs.baseline(row)
      // In either order, the saved names belong to the catalog with which drift is compared.
      assert.deepEqual(
        baseline?.tables[0]?.columns.map((column) => column.name),
        saved.tables[0]?.columns,
      )
    })

    test('other requests run while an exposure of 2,000 tables with 40,000 columns is saved', async () => {
      const many = Array.from({ length: 2_000 }, (_, n) =>
        names(`t${n}`, ...Array.from({ length: 20 }, (_unused, c) => `c${c}`)),
      )
      const id = await introspected(catalogOf(...many))
      const at = await place(id)
      let [turns, isDone] = [0, false]
      const others = (async () => {
        for (; !isDone; turns++) await setImmediate()
      })()
      const saved = await putExposure(deps(), call, at, { tables: many })
      isDone = true
      await others
      assert.equal(saved.tables.length, 2_000)
      assert.ok(turns > 5, `yielded ${turns} times`)
      assert.equal((await catalogs.counts([(await place(id)).row]))[0]?.exposedTableCount, 2_000)
    })
  })
}
