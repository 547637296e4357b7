import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { SelectQueryNode, type KyselyPlugin } from 'kysely'
import { gathered, usageOf } from '../../test/support/audited.ts'
import { largestTurn } from '../../test/support/largest-turn.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { newId, type AccountId, type ApiKeyId, type DatasourceId, type TeamId } from '../ids.ts'
import { ROWS_A_PORTION } from '../store/delete-in-portions.ts'
import { openStore, type Store } from '../store/open.ts'
import { openAudit } from './audit.ts'
import { DAY_LINES_MAX, LINES_MAX } from './usage-bounds.ts'

const key = new Uint8Array(32).fill(7)
const DAY_MS = 86_400_000
const LINES = 4_200

async function addTeam(store: Store): Promise<TeamId> {
  const id = newId<TeamId>()
  const row = { id, name: 't', slug: id, settings: '{}', created_at: new Date().toISOString() }
  await store.write((tx) => tx.insertInto('teams').values(row).execute())
  return id
}

async function addLines(store: Store, team_id: TeamId, at: number, lines: number): Promise<void> {
  const slot = new Date(at).toISOString().slice(0, 13)
  const place = { team_id, account_id: newId<AccountId>(), key_id: newId<ApiKeyId>(), chain: 'c' }
  const counts = { queries: 1, denied: 0, failed: 0, row_count: 1 }
  const more = { client: '', bytes: 1, duration_ms: 1, estimate: 0, times: '[]' }
  await store.append(async (tx) => {
    for (let n = 0; n < lines; n += 300) {
      const rows = Array.from({ length: Math.min(300, lines - n) }, () => {
        return { ...place, ...counts, datasource_id: newId<DatasourceId>() }
      })
      const slots = rows.map((row) => ({ ...row, ...more, slot }))
      await tx.insertInto('usage_slots').values(slots).execute()
      await tx
        .insertInto('usage_days')
        .values(rows.map((row) => ({ ...row, date: slot.slice(0, 10) })))
        .execute()
    }
  })
}

for (const dialect of DIALECTS) {
  describe(`usage lines on ${dialect}`, () => {
    let source: StoreSource
    let store: Store
    before(async () => {
      source = await storeSource(dialect)
      store = await openStore(await source.config())
    })
    after(async () => {
      await store[Symbol.asyncDispose]()
      await source[Symbol.asyncDispose]()
    })
    const count = async (table: 'usage_slots' | 'usage_days') => {
      const row = await store.db.selectFrom(table).select((eb) => eb.fn.countAll().as('n')).executeTakeFirstOrThrow() // prettier-ignore
      return Number(row.n)
    }
    const both = async () => (await count('usage_slots')) + (await count('usage_days'))

    test('the lines of a deleted team, and old lines, are deleted in portions', async () => {
      let at = Date.now()
      await using audit = openAudit({ store, key, now: () => at, retentionDays: async () => 180 })
      const [ended, lives] = [newId<TeamId>(), await addTeam(store)]
      await addLines(store, ended, at, LINES)
      await addLines(store, lives, at, 10)
      await addLines(store, lives, at - 500 * DAY_MS, LINES)
      const deleted = await largestTurn(both, () => store.write((tx) => audit.teamEnded(tx, ended, 10)))
      assert.equal(deleted, 0)
      const most = await largestTurn(both, () => audit.prune())
      if (dialect === 'sqlite') assert.ok(most <= 2 * ROWS_A_PORTION, `${most} rows in one turn`)
      assert.deepEqual([await count('usage_slots'), await count('usage_days')], [10, 10])
      at += 401 * DAY_MS
      await audit.prune()
      assert.equal(await both(), 0)
    })

    test('a team has a bounded number of lines in an hour, and no query is left out', async () => {
      const teamId = newId<TeamId>()
      const at = Date.parse('2026-03-01T12:00:00.000Z')
      await using audit = openAudit({ store, key, now: () => at })
      const datasourceId = newId<DatasourceId>()
      await addLines(store, teamId, at, LINES_MAX - 3)
      for (const count of [2, 6]) {
        for (let n = 0; n < count; n++) {
          const caller = { kind: 'key', accountId: newId<AccountId>(), keyId: newId<ApiKeyId>() } as const
          audit.record({ action: 'runQuery', caller }, { teamId, datasourceId, outcome: 'FAILED' })
        }
        await audit.flush()
      }
      const lines = []
      const slots = audit.slots(teamId, '2026-03-01', new AbortController().signal)
      for await (const portion of slots) lines.push(...portion)
      assert.equal(lines.length, LINES_MAX + 1)
      assert.equal(lines.reduce((sum, line) => sum + line.queries, 0), LINES_MAX + 5) // prettier-ignore
      const [shared] = lines.filter((line) => line.account_id === '')
      assert.deepEqual([shared?.datasource_id, shared?.queries], [datasourceId, 5])
    })

    test('a team has a bounded number of lines on a day, also with many datasources, and no query is left out', async () => {
      const teamId = newId<TeamId>()
      const at = Date.parse('2026-03-01T12:00:00.000Z')
      await using audit = openAudit({ store, key, now: () => at })
      const datasources = Array.from({ length: 5 }, () => newId<DatasourceId>())
      const ask = async () => {
        for (const datasourceId of datasources) {
          const caller = { kind: 'key', accountId: newId<AccountId>(), keyId: newId<ApiKeyId>() } as const
          audit.record({ action: 'runQuery', caller }, { teamId, datasourceId, outcome: 'FAILED' })
        }
        await audit.flush()
      }
      const added = async () =>
        (await usageOf(audit, teamId)).filter(({ datasourceId }) => datasources.some((id) => id === datasourceId))
      await addLines(store, teamId, at, DAY_LINES_MAX - 2)
      await ask()
      await ask()
      const named = (await added()).filter(({ accountId }) => accountId !== '')
      assert.deepEqual(named.map(({ queries }) => queries), [1, 1]) // prettier-ignore
      const { length } = await usageOf(audit, teamId)
      assert.equal(length, DAY_LINES_MAX + datasources.length)
      await ask()
      assert.equal((await added()).reduce((sum, line) => sum + line.queries, 0), 15) // prettier-ignore
      assert.equal((await usageOf(audit, teamId)).length, length)
    })

    test('beyond twice the lines of a day or hour, all datasources are counted together', async () => {
      const teamId = newId<TeamId>()
      const at = Date.parse('2026-03-01T12:00:00.000Z')
      await using audit = openAudit({ store, key, now: () => at })
      await addLines(store, teamId, at, 2 * DAY_LINES_MAX)
      for (let n = 0; n < 3; n++) {
        const caller = { kind: 'key', accountId: newId<AccountId>(), keyId: newId<ApiKeyId>() } as const
        audit.record({ action: 'runQuery', caller }, { teamId, datasourceId: newId<DatasourceId>(), outcome: 'FAILED' })
        await audit.flush()
      }
      const days = await usageOf(audit, teamId)
      assert.equal(days.length, 2 * DAY_LINES_MAX + 1)
      assert.deepEqual(days.filter((line) => line.datasourceId === '').map(({ accountId, queries }) => [accountId, queries]), [['', 3]]) // prettier-ignore
      const slots = (await gathered(audit.slots(teamId, '2026-03-01', new AbortController().signal))).flat()
      assert.equal(slots.length, 2 * DAY_LINES_MAX + 1)
      assert.deepEqual(
        slots.filter((line) => line.datasource_id === '').map(({ queries }) => queries),
        [3],
      )
    })

    test('a write of the audit reads only the lines that it changes', async () => {
      const teamIds = [newId<TeamId>(), newId<TeamId>()]
      const at = Date.parse('2026-03-01T12:00:00.000Z')
      for (const teamId of teamIds) await addLines(store, teamId, at, 100)
      let statements: string[] = []
      const recorder: KyselyPlugin = {
        transformQuery({ node }) {
          if (SelectQueryNode.is(node) && JSON.stringify(node).includes('"usage_slots"')) statements.push(node.kind)
          return node
        },
        transformResult: async ({ result }) => result,
      }
      const commit: Store['commit'] = (work, isolation) =>
        store.commit((tx) => work(tx.withPlugin(recorder)), isolation)
      await using audit = openAudit({ store: { ...store, commit }, key, now: () => at })
      const reads: number[] = []
      for (let n = 0; n < 3; n++) {
        for (const teamId of teamIds) {
          const caller = { kind: 'key', accountId: newId<AccountId>(), keyId: newId<ApiKeyId>() } as const
          audit.record({ action: 'runQuery', caller, client: `client ${n}` }, { teamId, outcome: 'FAILED' })
        }
        statements = []
        await audit.flush()
        reads.push(statements.length)
      }
      // The first write also reads the clients of the day, and counts the lines of the hour.
      assert.deepEqual(reads.slice(1), [2, 2])
    })

    test('lines are read in portions, each line once, in their order', async () => {
      const teamId = newId<TeamId>()
      const at = Date.parse('2026-03-01T12:00:00.000Z')
      await addLines(store, teamId, at, LINES)
      await addLines(store, teamId, at + DAY_MS, 7)
      await using audit = openAudit({ store, key })
      const portions: number[] = []
      const places: string[] = []
      const slots = audit.slots(teamId, '2026-03-01', new AbortController().signal)
      for await (const portion of slots) {
        portions.push(portion.length)
        places.push(...portion.map((line) => `${line.slot} ${line.datasource_id}`))
      }
      assert.deepEqual(portions, [500, 500, 500, 500, 500, 500, 500, 500, 207])
      assert.deepEqual(places, [...new Set(places)].sort())
      const days = await usageOf(audit, teamId, '2026-03-02')
      assert.deepEqual(new Set(days.map((line) => line.date)), new Set(['2026-03-02']))
      const all = await gathered(audit.usage(teamId, '2026-03-01', new AbortController().signal))
      assert.deepEqual(
        all.map(({ length }) => length),
        portions,
      )
      const dayPlaces = all.flat().map((line) => `${line.date} ${line.datasourceId}`)
      assert.deepEqual(dayPlaces, [...new Set(dayPlaces)].sort().reverse())
    })
  })
}
