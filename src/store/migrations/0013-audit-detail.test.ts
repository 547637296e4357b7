// The version before this migration wrote this store, and its process was killed. The store contains single rows, a
// pack, a row that counts 429s, and a change that is not linked yet.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { sql } from 'kysely'
import { AUDIT_KEY, findingsOf, reportsOf } from '../../../test/support/audited.ts'
import { olderStore } from '../../../test/support/older-store.ts'
import { DIALECTS, storeSource } from '../../../test/support/stores.ts'
import { openAudit } from '../../audit/audit.ts'
import { asId, type AccountId, type TeamId } from '../../ids.ts'
import { openStore } from '../open.ts'

const WRITTEN = JSON.parse(
  readFileSync(new URL('../../../test/support/audit-before-detail.json', import.meta.url), 'utf8'),
)
const teamId = asId<TeamId>('team')

for (const dialect of DIALECTS) {
  test(`on ${dialect}, the audit of the version before 0013 can be read, verified and continued after the upgrade`, async () => {
    await using source = await storeSource(dialect)
    const config = await source.nothing()
    const old = await olderStore(config, '0013')
    for (const table of ['audit_chains', 'audit', 'marks'] as const) {
      await old.insertInto(table).values(WRITTEN[table]).execute()
    }
    for (const { packed, ...pack } of WRITTEN.audit_packs) {
      const bytes = Buffer.from(packed, 'base64')
      await old
        .insertInto('audit_packs')
        .values({ ...pack, packed: bytes })
        .execute()
    }
    await old.destroy()

    await using store = await openStore(config)
    assert.deepEqual(await findingsOf(store), [])
    {
      await using audit = openAudit({ store, key: AUDIT_KEY })
      const caller = { kind: 'session', accountId: asId<AccountId>('account'), name: 'Ada' } as const
      const target = { kind: 'team', id: teamId, name: 'Shop' } as const
      await store.write((tx) => audit.change(tx, { action: 'changeTeam', caller }, { teamId }, { target }))
      const { items } = await audit.page(teamId, { limit: 100 })
      assert.equal(items.length, 45)
      assert.deepEqual(
        items.slice(0, 2).map(({ actor, target }) => [actor.name, target]),
        [
          ['Ada', target],
          [undefined, undefined],
        ],
      )
      assert.equal(items.at(-1)?.query, 'SELECT 0 -- "ü"')
    }
    const reports = await reportsOf(store)
    assert.deepEqual(
      reports.map(({ rows, finding }) => [rows, finding]),
      [
        [42, null],
        [3, null],
      ],
    )
    // Verification finds a detail that was added to an old row, and a changed detail.
    for (const [number, chain] of [reports[0], reports[1]].entries()) {
      const row = await store.db
        .selectFrom('audit')
        .select(['id', 'detail'])
        .where('chain', '=', chain?.chain ?? '')
        .where(sql<boolean>`(detail is null) = ${sql.lit(number === 0)}`)
        .executeTakeFirstOrThrow()
      const set = (detail: string | null) =>
        store.db.updateTable('audit').set({ detail }).where('id', '=', row.id).execute()
      for (const forged of number === 0 ? ['{}', ''] : [null, '{"by":"Eve"}', `${row.detail} `]) {
        await set(forged)
        assert.deepEqual(
          (await findingsOf(store)).map(({ kind, id }) => [kind, id]),
          [['changed', row.id]],
        )
      }
      await set(row.detail)
    }
    assert.deepEqual(await findingsOf(store), [])
  })
}
