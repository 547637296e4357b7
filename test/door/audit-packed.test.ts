// If many queries run at the same time, the store packs their audit rows. Packed rows must read like single rows in
// pages, filters, exports, usage, exposure proposals and verification, on both stores.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { AuditItem, AuditPage, Usage } from '../../src/contract/audit-schemas.ts'
import { openSecrets } from '../../src/secrets.ts'
import { openStore } from '../../src/store/open.ts'
import { findingsOf } from '../support/audited.ts'
import { openShop } from '../support/shop.ts'
import { DIALECTS, storeSource } from '../support/stores.ts'

const QUERIES = 400

for (const dialect of DIALECTS) {
  test(`packed audit rows read like single rows, on ${dialect}`, async () => {
    await using source = await storeSource(dialect)
    const { databaseUrl, dataDir } = await source.config()
    const secretKey = randomBytes(32)
    const texts = Array.from({ length: QUERIES }, (_, n) => `SELECT id FROM customers WHERE id = ${n}`)
    {
      await using shop = await openShop({
        env: {
          VITRINE_DATA_DIR: dataDir,
          VITRINE_SECRET_KEY: secretKey.toString('base64'),
          ...(databaseUrl !== null && { DATABASE_URL: databaseUrl }),
        },
      })
      const path = `/teams/${shop.teamId}`
      // At most ten queries run at a time. If all started together on a busy machine, some would wait too long for a
      // connection.
      for (let n = 0; n < QUERIES; n += 10) {
        const answers = await Promise.all(texts.slice(n, n + 10).map((sql) => shop.query(sql)))
        assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
      }
      assert.equal((await shop.query('SELECT email FROM customers')).status, 403)

      const seen: string[] = []
      for (let cursor = ''; ;) {
        const page = AuditPage.parse(await shop.owner.must('GET', `${path}/audit?limit=90&action=runQuery${cursor}`))
        seen.push(...page.items.map(({ query = '' }) => query))
        if (page.nextCursor === null) break
        cursor = `&cursor=${page.nextCursor}`
      }
      assert.equal(seen[0], 'SELECT email FROM customers')
      assert.deepEqual(seen.slice(1).sort(), texts.toSorted())
      const file = (await shop.owner.ask('GET', `${path}/audit/export?format=jsonl&outcome=ANSWERED&action=runQuery`))
        .text
      const lines = file.trimEnd().split('\n').map((line) => AuditItem.parse(JSON.parse(line))) // prettier-ignore
      assert.deepEqual(lines.map(({ query }) => query), seen.slice(1)) // prettier-ignore
      assert.equal((await shop.owner.ask('POST', `${shop.at}/exposure/from-refusal/${lines[7]?.id}`)).status, 200)
      const { days } = Usage.parse(await shop.owner.must('GET', `${path}/usage`))
      assert.equal(days.reduce((sum, { queries }) => sum + queries, 0), QUERIES + 1) // prettier-ignore
    }
    const config = { dataDir, databaseUrl, secretKey }
    await using store = await openStore(config)
    const packs = await store.db.selectFrom('audit_packs').select(['first_seq', 'last_seq']).execute()
    assert.ok(packs.length > 0)
    assert.deepEqual(await findingsOf(store, (await openSecrets(config)).derive('audit chain')), [])
  })
}
