import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { CompiledQuery } from 'kysely'
import { AUDIT_KEY, gathered, rowsOf } from '../../../test/support/audited.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../../test/support/stores.ts'
import { asId, newId, type AccountId, type ApiKeyId, type AuditId, type TeamId } from '../../ids.ts'
import { openStore, type Store } from '../../store/open.ts'
import { openAudit } from '../audit.ts'
import type { AuditedCall } from '../make-rows.ts'
import { newest, rowOfTeam } from './newest-rows.ts'
import type { AuditFilter } from './row-filter.ts'

const key = AUDIT_KEY
const begun = Date.parse('2026-03-01T12:00:00.000Z')
const teamId = newId<TeamId>()
const caller = { kind: 'key' as const, accountId: newId<AccountId>(), keyId: newId<ApiKeyId>() }
const call: AuditedCall = { action: 'runQuery', caller }

const all = (store: Pick<Store, 'db'>, filter: AuditFilter = {}) => rowsOf(store, teamId, filter)

for (const dialect of DIALECTS) {
  test(`on ${dialect}, a cursor with an impossible day or the last day of the year 9999 is accepted`, async () => {
    await using source = await storeSource(dialect)
    await using store = await openStore(await source.config())
    await using audit = openAudit({ store, key, now: () => begun })
    for (let n = 0; n < 40; n++) audit.record(call, { teamId, outcome: 'ANSWERED' })
    const read = async (at: string) => {
      const cursor = Buffer.from(`${at}|x`).toString('base64url')
      return (await audit.page(teamId, { limit: 100, cursor })).items.length
    }
    assert.equal(await read('2026-13-99T00:00:00.000Z'), await read('9999-12-31T23:59:59.999Z'))
    assert.equal(await read('9999-12-31T23:59:59.999Z'), 40)
    assert.equal((await all(store, { to: '9999-12-31T23:59:59.999Z' })).length, 40)
  })
}

describe('reading packs', () => {
  let source: StoreSource
  before(async () => {
    source = await storeSource('sqlite')
  })
  after(() => source[Symbol.asyncDispose]())

  test('SQLite reads the first pack and the next packs through an index', async () => {
    await using store = await openStore(await source.config())
    let at = begun
    await using audit = openAudit({ store, key, now: () => at })
    for (let n = 0; n < 200; n++) {
      audit.record(call, { teamId, outcome: 'ANSWERED' })
      at += 1_000
    }
    await audit.flush()
    const middle = new Date(begun + 100_000).toISOString()
    assert.deepEqual(await plansOf(store, (db) => all({ db }, { to: middle })), [
      '(team_id=? AND last_at<?)',
      '(team_id=? AND (last_at,first_id)<(?,?))',
    ])
    assert.deepEqual(
      await plansOf(store, (db) => gathered(newest({ db }, teamId, {}, { at: middle, id: asId<AuditId>('x') }))),
      ['(team_id=? AND last_at<?)', '(team_id=? AND (last_at,first_id)<(?,?))'],
    )
    const row = (await all({ db: store.db })).at(-1)
    assert.ok(row !== undefined)
    assert.deepEqual(await plansOf(store, (db) => rowOfTeam({ db }, teamId, row.id)), [
      '(first_id>? AND first_id<?)',
      '(first_id=?)',
    ])
  })

  test('a reader that finds enough newer single rows reads no second pack', async () => {
    await using store = await openStore(await source.config())
    let at = begun
    await using audit = openAudit({ store, key, now: () => at })
    for (let n = 0; n < 400; n++, at += 1_000) audit.record(call, { teamId, outcome: 'ANSWERED' })
    await audit.flush()
    for (let n = 0; n < 20; n++) audit.record({ ...call, action: 'getSchema' }, { teamId, outcome: 'ANSWERED' })
    await audit.flush()
    const queries = await statementsOf(store, async (db) => {
      const filter = { actions: ['getSchema'] }
      for await (const rows of newest({ db }, teamId, { filter }, null)) {
        assert.equal(rows.length, 20)
        break
      }
    })
    assert.equal(queries.filter(({ sql }) => sql.includes('audit_packs')).length, 1)
  })

  /** Returns the statements that the store received. */
  async function statementsOf(
    store: Store,
    work: (db: Store['db']) => Promise<unknown>,
  ): Promise<readonly CompiledQuery[]> {
    const asked: CompiledQuery[] = []
    await work(
      store.db.withPlugin({
        transformQuery({ node, queryId }) {
          asked.push(store.db.getExecutor().compileQuery(node, queryId))
          return node
        },
        transformResult: async ({ result }) => result,
      }),
    )
    return asked
  }

  /** Returns the query plans of the statements that read packs, without duplicates. */
  async function plansOf(store: Store, work: (db: Store['db']) => Promise<unknown>): Promise<readonly string[]> {
    const found = new Set<string>()
    for (const { sql, parameters } of await statementsOf(store, work)) {
      const { rows } = await store.db.executeQuery<{ readonly detail: string }>(
        CompiledQuery.raw(`EXPLAIN QUERY PLAN ${sql}`, [...parameters]),
      )
      for (const { detail } of rows) {
        if (detail.includes('audit_packs')) found.add(/\(.*\)$/.exec(detail)?.[0] ?? detail)
      }
    }
    return [...found]
  }
})
