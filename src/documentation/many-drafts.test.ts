import assert from 'node:assert/strict'
import { test } from 'node:test'
import { datasourceRow, teamRow } from '../../test/support/rows.ts'
import { storeSource } from '../../test/support/stores.ts'
import { turnsDuring } from '../../test/support/turns-during.ts'
import { jsonOf } from '../contract/name-keyed-objects.ts'
import { newId, type TeamId } from '../ids.ts'
import { openStore } from '../store/open.ts'
import { draftsOf } from './drafts.ts'
import { EMPTY, Said, writeDraft, type Draft } from './stored-draft.ts'
import { readPublished, writePublished } from './visible-texts.ts'
import { withdrawHidden } from './withdraw-texts.ts'

/** A store with a datasource that has the same draft for each table. */
async function openDrafts(tables: number, draft: Draft) {
  await using stack = new AsyncDisposableStack()
  const source = stack.use(await storeSource('sqlite'))
  const store = stack.use(await openStore(await source.config()))
  const teamId = newId<TeamId>()
  const row = datasourceRow(teamId)
  const here = {
    datasource_id: row.id,
    schema: 'public',
    draft: writeDraft(draft),
    updated_at: '2026-01-01T00:00:00.000Z',
    author_id: null,
  }
  await store.write(async (tx) => {
    await tx.insertInto('teams').values(teamRow(teamId)).execute()
    await tx.insertInto('datasources').values(row).execute()
    for (let from = 0; from < tables; from += 1_000) {
      const some = Array.from({ length: 1_000 }, (_, n) => ({ ...here, table: `t${from + n}` }))
      await tx.insertInto('documentation').values(some).execute()
    }
  })
  const held = stack.move()
  return { store, id: row.id, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

const columns = Array.from({ length: 20 }, (_, n) => `column_${n}`)

test('other requests run while the drafts of many tables are read', async () => {
  const draft = { ...EMPTY, columns: new Map(columns.map((name) => [name, { said: null, personal: true }])) }
  await using opened = await openDrafts(10_000, draft)
  const { store, id } = opened
  const turns = await turnsDuring(async () => {
    const drafts = await draftsOf(store.db, id)
    assert.deepEqual([drafts.length, drafts[0]?.draft.columns.size], [10_000, 20])
  })
  assert.ok(turns > 3, `${turns} turns`)
})

test('other requests run while the texts of many hidden tables are withdrawn', async () => {
  const written = {
    text: 'A text.',
    origin: 'GENERATED',
    restsOn: [],
    tells: false,
    status: 'ACCEPTED',
    types: new Map(),
  }
  const said = Said.parse(written)
  const draft = { ...EMPTY, columns: new Map(columns.map((name) => [name, { said, personal: null }])) }
  await using opened = await openDrafts(2_000, draft)
  const { store, id } = opened
  const nothing = { capturedAt: '2026-01-01T00:00:00.000Z', tables: [], capture: null }
  const turns = await turnsDuring(() =>
    store.write((tx) => withdrawHidden(tx, id, { full: nothing, exposed: nothing, named: [], shrunk: new Set() })),
  )
  assert.deepEqual(await draftsOf(store.db, id), [])
  assert.ok(turns > 3, `${turns} turns`)
})

test('other requests run while a publication of many tables is read and written', async () => {
  const said = { text: 'A text.', origin: 'GENERATED' as const, restsOn: ['public.t.a'], tells: false }
  const texts = new Map(columns.map((name) => [name, said]))
  const table = { schema: 'public', summary: said, examples: null, statements: [said], columns: texts }
  const tables = Array.from({ length: 4_000 }, (_, n) => ({ ...table, table: `t${n}` }))
  let json = ''
  const writing = await turnsDuring(async () => void (json = await writePublished(tables)))
  assert.equal(json, jsonOf(tables))
  const reading = await turnsDuring(async () => assert.deepEqual(await readPublished(json), tables))
  assert.ok(writing > 1 && reading > 1, `${writing} and ${reading} turns`)
})
