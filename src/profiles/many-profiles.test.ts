import assert from 'node:assert/strict'
import { test } from 'node:test'
import { datasourceRow, teamRow } from '../../test/support/rows.ts'
import { storeSource } from '../../test/support/stores.ts'
import { turnsDuring } from '../../test/support/turns-during.ts'
import { newId, type TeamId } from '../ids.ts'
import { openStore } from '../store/open.ts'
import { forgetHidden, profilesOf } from './stored-profiles.ts'

test('other requests run while the profiles of many hidden tables are deleted', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.config())
  const teamId = newId<TeamId>()
  const row = datasourceRow(teamId)
  const profile = JSON.stringify({ rowsSampled: 1, complete: true, columns: [] })
  const here = { datasource_id: row.id, schema: 'public', run: 'r', captured_at: '2026-01-01T00:00:00.000Z', profile }
  await store.write(async (tx) => {
    await tx.insertInto('teams').values(teamRow(teamId)).execute()
    await tx.insertInto('datasources').values(row).execute()
    for (let from = 0; from < 10_000; from += 1_000) {
      const some = Array.from({ length: 1_000 }, (_, n) => ({ ...here, table: `t${from + n}` }))
      await tx.insertInto('profiles').values(some).execute()
    }
  })
  const turns = await turnsDuring(() => store.write((tx) => forgetHidden(tx, row.id, [], null)))
  assert.equal((await profilesOf(store.db, row.id)).size, 0)
  assert.ok(turns > 3, `${turns} turns`)
})
