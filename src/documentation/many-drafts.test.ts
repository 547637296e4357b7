import assert from 'node:assert/strict'
import { test } from 'node:test'
import { datasourceRow, teamRow } from '../../test/support/rows.ts'
import { storeSource } from '../../test/support/stores.ts'
import { newId, type TeamId } from '../ids.ts'
import { openStore } from '../store/open.ts'
import { draftsOf } from './drafts.ts'
import { EMPTY, writeDraft } from './stored-draft.ts'

const TABLES = 10_000

test('other requests run while the drafts of many tables are read', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.config())
  const teamId = newId<TeamId>()
  const row = datasourceRow(teamId)
  const draft = writeDraft({
    ...EMPTY,
    columns: new Map(Array.from({ length: 20 }, (_, n) => [`column_${n}`, { said: null, personal: true }])),
  })
  const here = {
    datasource_id: row.id,
    schema: 'public',
    draft,
    updated_at: '2026-01-01T00:00:00.000Z',
    author_id: null,
  }
  await store.write(async (tx) => {
    await tx.insertInto('teams').values(teamRow(teamId)).execute()
    await tx.insertInto('datasources').values(row).execute()
    for (let from = 0; from < TABLES; from += 1_000) {
      const some = Array.from({ length: 1_000 }, (_, n) => ({ ...here, table: `t${from + n}` }))
      await tx.insertInto('documentation').values(some).execute()
    }
  })
  let turns = 0
  const count = (): void => {
    turns++
    setImmediate(count).unref()
  }
  setImmediate(count).unref()
  const drafts = await draftsOf(store.db, row.id)
  assert.deepEqual([drafts.length, drafts[0]?.draft.columns.size], [TABLES, 20])
  assert.ok(turns > 3, `${turns} turns`)
})
