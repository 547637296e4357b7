import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { gathered } from '../../test/support/audited.ts'
import { sessionCall } from '../../test/support/connected.ts'
import { sql } from 'kysely'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { AppError } from '../errors.ts'
import { asId, newId, type AccountId, type ApiKeyId, type AuditId, type DatasourceId, type TeamId } from '../ids.ts'
import { openStore, type Store } from '../store/open.ts'
import { openAudit, outcomeOf } from './audit.ts'
import type { AuditedCall } from './make-rows.ts'
import { exportAudit, openExports } from './reading/within-reach.ts'

const accountId = newId<AccountId>()
const key = new Uint8Array(32).fill(7)
const byKey = (keyId = newId<ApiKeyId>()): AuditedCall => ({
  action: 'runQuery',
  caller: { kind: 'key', accountId, keyId },
})
const bySession: AuditedCall = { action: 'putExposure', caller: { kind: 'session', accountId } }
const WHAT = { target: { kind: 'exposure', id: 'd', name: 'shop' } } as const
const limited = () => new AppError('RATE_LIMITED', 'no', { extra: { retryAfter: 1 } })

for (const dialect of DIALECTS) {
  describe(`the audit on ${dialect}`, () => {
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

    test('a page shows all rows that were recorded before the request, newest first', async () => {
      await using audit = openAudit({ store, key })
      const teamId = newId<TeamId>()
      const at = { teamId, datasourceId: newId<DatasourceId>() }
      for (let n = 0; n < 150; n++)
        audit.record(byKey(), { ...at, outcome: 'ANSWERED', rowCount: n, query: 'SELECT 1' })
      const seen: (number | undefined)[] = []
      let cursor: string | undefined
      do {
        const page = await audit.page(teamId, { limit: 40, cursor })
        seen.push(...page.items.map((item) => item.rowCount))
        cursor = page.nextCursor ?? undefined
      } while (cursor !== undefined)
      assert.deepEqual(seen, [...Array(150).keys()].reverse())
    })

    test('long rows are read and exported a few at a time', async () => {
      await using audit = openAudit({ store, key })
      const reader = { teamId: newId<TeamId>(), accountId, role: 'OWNER', status: 'ACTIVE' } as const
      const { teamId } = reader
      const numbers = [...Array(40).keys()].reverse()
      const query = 'x'.repeat(200_000)
      for (const rowCount of numbers.toReversed()) audit.record(byKey(), { teamId, outcome: 'DENIED', rowCount, query })
      const ids = (await gathered(audit.all(teamId, {}))).flat().map(({ id }) => asId<AuditId>(id))
      for (const filter of [{}, { ids }]) {
        const seen: (number | undefined)[] = []
        let cursor: string | undefined
        do {
          const page = await audit.page(teamId, { limit: 40, cursor, filter })
          assert.ok(page.items.length <= 6, `${page.items.length} items on a page`)
          seen.push(...page.items.map((item) => item.rowCount))
          cursor = page.nextCursor ?? undefined
        } while (cursor !== undefined)
        assert.deepEqual(seen, numbers)
      }
      for await (const items of audit.all(teamId, {})) assert.ok(items.length <= 5, `${items.length} items in a batch`)

      let [turns, isDone] = [0, false]
      const counting = (async () => {
        for (; !isDone; turns++) await setImmediate()
      })()
      const deps = { audit, exports: openExports((address) => address), reachableIds: async () => [] }
      const parts = await gathered((await exportAudit(deps, sessionCall(accountId, 'x'), reader, {})).parts)
      isDone = true
      await counting
      assert.equal(parts.join('').split('\r\n').length, 42)
      assert.ok(Math.max(...parts.map((part) => part.length)) < 500_000)
      assert.ok(turns >= 20, `${turns} turns`)
    })

    test('the texts of one long row are exported in parts, and the file is whole', async () => {
      await using audit = openAudit({ store, key })
      const reader = { teamId: newId<TeamId>(), accountId, role: 'OWNER', status: 'ACTIVE' } as const
      const { teamId } = reader
      const query = '"é'.repeat(150_000)
      audit.record(byKey(), { teamId, outcome: 'DENIED', query, printed: `=${query}` })
      const [[item] = []] = await gathered(audit.all(teamId, {}))
      const deps = { audit, exports: openExports((address) => address), reachableIds: async () => [] }
      for (const format of ['csv', 'jsonl'] as const) {
        const { parts } = await exportAudit(deps, sessionCall(accountId, 'x'), reader, { format })
        const all = await gathered(parts)
        const isShort = format === 'csv' && all.every((part) => part.length < 200_000)
        assert.ok(isShort || (format === 'jsonl' && all.length > 1), `${all.length} parts`)
        const text = all.join('')
        if (format === 'jsonl') assert.equal(text.split('\n').at(-2), JSON.stringify(item))
        else assert.ok(text.includes(`,"${query.replaceAll('"', '""')}",,"'=${query.replaceAll('"', '""')}",`))
      }
    })

    test('a row keeps its fields as recorded, and leaves out fields that do not apply', async () => {
      await using audit = openAudit({ store, key })
      const teamId = newId<TeamId>()
      const datasourceId = newId<DatasourceId>()
      const call = byKey()
      const blocked = { kind: 'column', name: 'ssn' }
      const extra = { blocked, hint: 'Ask for less.', position: 7, estimate: 2.5, limit: 1, details: ['not kept'] }
      audit.refused(call, { teamId, datasourceId }, new AppError('QUERY_DENIED', 'no such column', { extra }))
      const [item] = (await audit.page(teamId, { limit: 1 })).items
      assert.ok(item)
      const { id, at, ...rest } = item
      assert.ok(id !== '' && !Number.isNaN(Date.parse(at)))
      assert.deepEqual(rest, {
        actor: { accountId, keyId: call.caller.keyId },
        via: 'API_KEY',
        action: 'runQuery',
        outcome: 'DENIED',
        datasourceId,
        code: 'QUERY_DENIED',
        blocked,
        error: 'no such column',
        hint: 'Ask for less.',
        position: 7,
        estimate: 2.5,
        limit: 1,
      })
    })

    test('a row keeps names, changes, tables and parameters, leaves out invalid numbers, and cuts a long error text', async () => {
      await using audit = openAudit({ store, key })
      const teamId = newId<TeamId>()
      const call = byKey()
      const named = { ...call, caller: { ...call.caller, name: 'Ada', keyName: 'CI "ü"' } }
      const tables = [{ schema: 'public', table: 'orders' }]
      const params = '[1,{"type":"date","value":"2026-01-01"},null]'
      const sentence = 'x'.repeat(3_000)
      audit.record(named, {
        teamId,
        outcome: 'FAILED',
        tables,
        params,
        estimate: Infinity,
        position: -1,
        error: sentence,
      })
      const target = { kind: 'key', id: 'k', name: 'CI' } as const
      const changes = { scopes: { added: ['data:read'], removed: [] }, expiresAt: { from: null, to: 'never' } }
      await store.write((tx) => audit.change(tx, bySession, { teamId }, { target, changes }))
      const { items } = await audit.page(teamId, { limit: 2 })
      const query = items.find(({ via }) => via === 'API_KEY')
      const change = items.find(({ via }) => via === 'SESSION')
      assert.deepEqual([query?.actor.name, query?.keyName, query?.tables, query?.params], ['Ada', 'CI "ü"', tables, JSON.parse(params)]) // prettier-ignore
      assert.deepEqual(
        [query?.estimate, query?.position, query?.error],
        [undefined, undefined, `${'x'.repeat(2_000)}…`],
      )
      assert.deepEqual([change?.target, change?.changes], [target, changes])
      assert.deepEqual(await audit.one(teamId, asId<AuditId>(query?.id ?? ''), {}), query)
      for (const [team, scope] of [
        [newId<TeamId>(), {}],
        [teamId, { filter: { codes: ['NONE'] } }],
      ] as const) {
        assert.equal(await audit.one(team, asId<AuditId>(query?.id ?? ''), scope), null)
      }
    })

    test('an error that two functions report gets one row, with the fields of the first report', async () => {
      await using audit = openAudit({ store, key })
      const teamId = newId<TeamId>()
      const error = new AppError('CONFLICT', 'no')
      audit.refused(bySession, { teamId, datasourceId: newId<DatasourceId>() }, error)
      audit.refused(bySession, { teamId }, error)
      const { items } = await audit.page(teamId, { limit: 9 })
      assert.deepEqual(
        items.map((item) => [item.code, typeof item.datasourceId]),
        [['CONFLICT', 'string']],
      )
    })

    test('a change is recorded if and only if its transaction commits', async () => {
      await using audit = openAudit({ store, key })
      const teamId = newId<TeamId>()
      await store.write((tx) => audit.change(tx, bySession, { teamId }, WHAT))
      await assert.rejects(
        store.write(async (tx) => {
          await audit.change(tx, bySession, { teamId }, WHAT)
          throw new Error('rolled back')
        }),
      )
      const { items } = await audit.page(teamId, { limit: 10 })
      assert.deepEqual(
        items.map((item) => [item.via, item.action, item.outcome]),
        [['SESSION', 'putExposure', 'ANSWERED']],
      )
    })

    test('one row counts the 429s of a key within a minute, over several writes and processes', async () => {
      const now = () => Date.parse('2026-01-01T00:00:30.000Z')
      await using one = openAudit({ store, key, now })
      await using other = openAudit({ store, key, now })
      const teamId = newId<TeamId>()
      const [a, b] = [byKey(), byKey()]
      for (const audit of [one, other, one]) {
        for (let n = 0; n < 3; n++) audit.refused(a, { teamId }, limited())
        await audit.flush()
      }
      one.refused(b, { teamId }, limited())
      const { items } = await one.page(teamId, { limit: 10 })
      const counted = items.map((item) => [item.actor.keyId, item.code, item.times ?? 1])
      assert.deepEqual(
        new Map(counted.map(([key, , times]) => [key, times])),
        new Map([
          [a.caller.keyId, 9],
          [b.caller.keyId, 1],
        ]),
      )
    })

    test('a reader gets only rows of the requested datasources and rows without a datasource', async () => {
      await using audit = openAudit({ store, key })
      const teamId = newId<TeamId>()
      const [mine, theirs] = [newId<DatasourceId>(), newId<DatasourceId>()]
      for (const datasourceId of [mine, theirs]) audit.record(byKey(), { teamId, datasourceId, outcome: 'ANSWERED' })
      audit.record(bySession, { teamId, outcome: 'ANSWERED' })
      const of = async (datasourceIds: DatasourceId[]) =>
        (await audit.page(teamId, { limit: 9, datasourceIds })).items.map((item) => item.datasourceId)
      assert.deepEqual(await of([mine]), [undefined, mine])
      assert.deepEqual(await of([]), [undefined])
    })

    test('rows are written and linked without a call of flush(), even after all earlier rows were linked', async () => {
      await using audit = openAudit({ store, key })
      const signal = AbortSignal.timeout(60_000)
      for (let round = 0; round < 2; round++) {
        const teamId = newId<TeamId>()
        audit.record(byKey(), { teamId, outcome: 'ANSWERED' })
        await store.write((tx) => audit.change(tx, bySession, { teamId }, WHAT))
        let linked = 0
        while (linked < 2) {
          await setImmediate(undefined, { signal })
          const rows = store.db.selectFrom('audit').select('id').where('team_id', '=', teamId)
          linked = (await rows.where('seq', 'is not', null).execute()).length
        }
      }
    })

    test('pruning removes only rows that are older than the retention of their team', async () => {
      const day = 86_400_000
      let at = Date.parse('2026-01-01T00:00:00.000Z')
      await using audit = openAudit({ store, key, now: () => at, retentionDays: async () => 30 })
      const teamId = newId<TeamId>()
      for (const age of [0, 20, 31]) {
        at = Date.parse('2026-01-01T00:00:00.000Z') + age * day
        audit.record(byKey(), { teamId, outcome: 'ANSWERED', rowCount: age })
      }
      await audit.flush()
      await audit.prune()
      assert.deepEqual(
        (await audit.page(teamId, { limit: 9 })).items.map((item) => item.rowCount),
        [31, 20],
      )
    })
  })
}

test('long rows that have expired are removed a few at a time, so that other requests run in between', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.config())
  let at = Date.parse('2026-01-01T00:00:00.000Z')
  await using audit = openAudit({ store, key, now: () => at, retentionDays: async () => 30 })
  const teamId = newId<TeamId>()
  const query = 'x'.repeat(200_000)
  for (let n = 0; n < 40; n++) audit.record(byKey(), { teamId, outcome: 'DENIED', query })
  await audit.flush()
  at += 40 * 86_400_000
  let [turns, isDone] = [0, false]
  const counting = (async () => {
    for (; !isDone; turns++) await setImmediate()
  })()
  await audit.prune()
  isDone = true
  await counting
  assert.deepEqual((await audit.page(teamId, { limit: 9 })).items, [])
  assert.ok(turns >= 20, `${turns} turns`)
})

test('disposing the audit writes all waiting rows', async () => {
  await using source = await storeSource('sqlite')
  const config = await source.config()
  const teamId = newId<TeamId>()
  {
    await using store = await openStore(config)
    await using audit = openAudit({ store, key })
    audit.record(byKey(), { teamId, outcome: 'ANSWERED' })
  }
  await using store = await openStore(config)
  await using audit = openAudit({ store, key })
  assert.equal((await audit.page(teamId, { limit: 9 })).items.length, 1)
})

test('`behind` is true while the waiting rows exceed 64 MiB, and all of them are written', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.config())
  await using audit = openAudit({ store, key })
  const teamId = newId<TeamId>()
  const query = 'x'.repeat(1 << 20)
  for (let n = 0; n < 65; n++) audit.record(byKey(), { teamId, outcome: 'ANSWERED', query })
  assert.equal(audit.behind, true)
  await audit.flush()
  assert.deepEqual([audit.behind, audit.totals.rows], [false, 65])
})

test('if rows are lost at the end, the error has their number, even if only counted refusals wait', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.config())
  const audit = openAudit({ store, key })
  await sql`ALTER TABLE audit RENAME TO away`.execute(store.db)
  audit.refused(byKey(), { teamId: newId<TeamId>() }, limited())
  await assert.rejects(async () => await audit[Symbol.asyncDispose](), /1 audit rows are lost/)
})

test('rows that the store rejected are written in order when it accepts writes again', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.config())
  // With a fixed clock, all refusals are in one minute and one row.
  const at = Date.now()
  await using audit = openAudit({ store, key, now: () => at })
  const teamId = newId<TeamId>()
  await sql`CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'disk full'); END`.execute(store.db)
  const call = byKey()
  audit.record(call, { teamId, outcome: 'ANSWERED', rowCount: 1 })
  audit.refused(call, { teamId }, limited())
  await assert.rejects(audit.flush(), /disk full/)
  audit.record(call, { teamId, outcome: 'ANSWERED', rowCount: 2 })
  audit.refused(call, { teamId }, limited())
  await sql`DROP TRIGGER full`.execute(store.db)
  const { items } = await audit.page(teamId, { limit: 9 })
  assert.deepEqual(
    items.flatMap((item) => item.rowCount ?? []),
    [2, 1],
  )
  assert.equal(items.find((item) => item.code === 'RATE_LIMITED')?.times, 2)
})

test('an invalid cursor is refused', async () => {
  await using source = await storeSource('sqlite')
  await using store = await openStore(await source.config())
  await using audit = openAudit({ store, key })
  for (const cursor of ['', 'x', Buffer.from('2026|1|2').toString('base64url'), '%%%']) {
    await assert.rejects(audit.page(newId<TeamId>(), { limit: 1, cursor }), { code: 'INVALID_REQUEST' })
  }
})

test('an error with status 403, 404 or 429 has the outcome DENIED, and any other error has FAILED', () => {
  const codes = ['QUERY_DENIED', 'NOT_FOUND', 'RATE_LIMITED', 'INVALID_QUERY', 'QUERY_FAILED', 'INTERNAL']
  assert.deepEqual(codes.map(outcomeOf), ['DENIED', 'DENIED', 'DENIED', 'FAILED', 'FAILED', 'FAILED'])
})
