import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { AUDIT_KEY, findingOf, findingsOf, reportsOf, rowsOf, usageOf } from '../../test/support/audited.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { AppError } from '../errors.ts'
import { asId, newId, type AccountId, type ApiKeyId, type AuditId, type DatasourceId, type TeamId } from '../ids.ts'
import { openStore, type Store } from '../store/open.ts'
import { openAudit, type Audit } from './audit.ts'
import type { Pack } from './packs.ts'
import { newestTime, rowOfTeam } from './reading/newest-rows.ts'
import { singleRows } from './reading/single-rows.ts'
import { actionsOf } from './reading/action-kinds.ts'
import { fits, type AuditFilter } from './reading/row-filter.ts'
import type { AuditedCall } from './make-rows.ts'
import { PACKED_FROM } from './writing/pack-lines.ts'

const key = AUDIT_KEY
const day = 86_400_000
const begun = Date.parse('2026-03-01T12:00:00.000Z')
const callers = Array.from({ length: 3 }, (_, index): AuditedCall => {
  const accountId = newId<AccountId>()
  const caller =
    index === 0
      ? { kind: 'session' as const, accountId }
      : { kind: 'key' as const, accountId, name: `Adä "${index}"`, keyId: newId<ApiKeyId>(), keyName: '\ud800' }
  return { action: index === 2 ? 'getSchema' : 'runQuery', caller, client: 'test/1' }
})
const datasources = [newId<DatasourceId>(), newId<DatasourceId>()]
const TEXTS = ['SELECT 1', 'SELECT \'äöü 😀 \\ "x"\'', '\u2028\n\t\u0001', 'x'.repeat(3_000), '\\ud800']

/** Records the call number `n`. Some calls are refused, the others answered. */
function record(audit: Audit, teamId: TeamId, n: number): void {
  const call = callers[n % callers.length]
  const datasourceId = datasources[n % datasources.length]
  assert.ok(call !== undefined && datasourceId !== undefined)
  const at = { teamId, datasourceId }
  if (n % 17 === 0) audit.refused(call, at, new AppError('QUERY_DENIED', 'no'))
  else {
    const query = `${TEXTS[n % TEXTS.length]} ${n}`
    audit.record(call, {
      ...at,
      outcome: 'ANSWERED',
      query,
      printed: query,
      rowCount: n,
      bytes: 2 ** 40,
      durationMs: 0.1 * n,
    })
  }
}

const packs = (store: Store) =>
  store.db.selectFrom('audit_packs').selectAll().orderBy('chain').orderBy('first_seq').execute()
const textOf = ({ packed }: Pack) => inflateRawSync(packed).toString()
const packedOf = (text: string | Uint8Array) => deflateRawSync(text)

for (const dialect of DIALECTS) {
  describe(`packs on ${dialect}`, () => {
    let source: StoreSource
    before(async () => {
      source = await storeSource(dialect)
    })
    after(() => source[Symbol.asyncDispose]())
    const open = async () => openStore(await source.config())

    test('many rows of a team are packed, but not few rows, refused rows or rows without a team', async () => {
      await using store = await open()
      await using audit = openAudit({ store, key })
      const [many, few] = [newId<TeamId>(), newId<TeamId>()]
      for (let n = 1; n <= 100; n++) record(audit, many, n)
      for (let n = 1; n < PACKED_FROM; n++) record(audit, few, n)
      for (let n = 1; n <= 100; n++) audit.record({ ...bySession }, { outcome: 'ANSWERED' })
      await audit.flush()
      const [pack, ...more] = await packs(store)
      assert.deepEqual([pack?.team_id, pack?.first_seq, pack?.last_seq, more], [many, 1, 95, []])
      const single = await store.db.selectFrom('audit').select(['team_id', 'outcome']).execute()
      const count = (team: TeamId | null) => single.filter((row) => row.team_id === team).length
      assert.deepEqual([count(many), count(few), count(null)], [5, PACKED_FROM - 1, 100])
      assert.ok((pack?.packed.length ?? 0) * 10 < textOf(pack ?? assert.fail()).length)
      assert.deepEqual(await findingsOf(store), [])
    })

    test('newestTime() returns the time of the newest row, single or packed', async () => {
      await using store = await open()
      assert.equal(await newestTime(store), null)
      let at = begun
      await using audit = openAudit({ store, key, now: () => at })
      const teamId = newId<TeamId>()
      record(audit, teamId, 17)
      await audit.flush()
      assert.equal(await newestTime(store), begun)
      at = begun + day
      for (let n = 1; n <= 2 * PACKED_FROM; n++) if (n % 17 !== 0) record(audit, teamId, n)
      await audit.flush()
      assert.equal((await packs(store)).length, 1)
      assert.equal(await newestTime(store), begun + day)
    })

    test('a search for blocked columns reads rows that do not match in slices', async () => {
      await using store = await open()
      await using audit = openAudit({ store, key })
      const teamId = newId<TeamId>()
      for (let n = 0; n < 5_100; n++) record(audit, teamId, 17)
      await audit.flush()
      const watermarks: unknown[] = []
      const scope = { filter: { blocked: [{ kind: 'column' }] } }
      for await (const batch of singleRows(store, teamId, scope, null, undefined)) watermarks.push(...batch)
      assert.equal(watermarks.length, 1)
    })

    test('single and packed rows of several processes are read in one order despite clock changes, and filters apply to all', async () => {
      await using store = await open()
      const teamId = newId<TeamId>()
      let at = begun
      const now = () => at
      {
        await using one = openAudit({ store, key, now })
        await using other = openAudit({ store, key, now })
        for (let n = 0; n < 900; n++) {
          record(n % 2 === 0 ? one : other, teamId, n)
          at += n === 450 ? -5_000 : n % 7 === 0 ? 1_400 : 0
          if (n % 300 === 299) await Promise.all([one.flush(), other.flush()])
          else if (n % 100 === 99) await one.flush()
        }
      }
      assert.ok((await packs(store)).length > 6, 'packs of several minutes and processes')
      const rows = await rowsOf(store, teamId)
      assert.equal(rows.length, 900)
      assert.equal(new Set(rows.map(({ id }) => id)).size, 900)
      for (const [index, row] of rows.entries()) {
        const next = rows[index + 1]
        assert.ok(next === undefined || row.at > next.at || (row.at === next.at && row.id > next.id))
      }
      const middle = rows[400]?.at ?? ''
      const [session, byKey] = [callers[0]?.caller, callers[1]?.caller]
      const filters: readonly AuditFilter[] = [
        { from: middle },
        { to: middle },
        { accountId: session?.accountId ?? assert.fail() },
        { keyIds: [byKey?.keyId ?? assert.fail()] },
        { keyIds: [newId<ApiKeyId>()] },
        { keyIds: [newId<ApiKeyId>(), byKey?.keyId ?? assert.fail()] },
        { ids: [1, 70, 3].map((n) => rows[n]?.id ?? assert.fail()) },
        { ids: [newId<AuditId>()] },
        { kinds: actionsOf(['query']) },
        { kinds: actionsOf(['change', 'signIn']) },
        { vias: ['SESSION', 'CONNECTOR'] },
        { clients: ['curl/8'] },
        { blocked: [{ kind: 'column' }] },
        { blocked: [{ kind: 'column', name: 'email' }, { kind: 'cost' }] },
        { text: 'select' },
        { text: 'orders', from: middle },
        { text: 'no such text' },
        { text: '"' },
        { datasourceId: datasources[1] ?? assert.fail() },
        { actions: ['getSchema'] },
        { actions: ['getSchema', 'runQuery'] },
        { outcomes: ['ANSWERED'], from: middle },
        { outcomes: ['DENIED'] },
        { outcomes: ['DENIED', 'ANSWERED'] },
        { codes: ['QUERY_DENIED'] },
      ]
      for (const filter of filters) {
        assert.deepEqual(
          await rowsOf(store, teamId, filter),
          rows.filter((row) => fits(row, { filter }, null)),
        )
      }
      await using audit = openAudit({ store, key, now })
      for (const limit of [1, 7, 1_000]) {
        const seen: string[] = []
        let cursor: string | undefined
        do {
          const page = await audit.page(teamId, { limit, cursor, filter: { to: middle } })
          seen.push(...page.items.map(({ id }) => id))
          cursor = page.nextCursor ?? undefined
        } while (cursor !== undefined)
        assert.deepEqual(
          seen,
          rows.filter((row) => row.at < middle).map(({ id }) => id),
        )
      }
      assert.deepEqual(await findingsOf(store), [])
    })

    test('a row is found by its id only in its own team', async () => {
      await using store = await open()
      const [teamId, stranger] = [newId<TeamId>(), newId<TeamId>()]
      await using audit = openAudit({ store, key })
      for (let n = 0; n < 100; n++) record(audit, n % 2 === 0 ? teamId : stranger, n)
      await audit.flush()
      for (const row of await rowsOf(store, teamId)) {
        assert.deepEqual(await rowOfTeam(store, teamId, row.id), row)
        assert.equal(await rowOfTeam(store, stranger, row.id), null)
      }
      for (const id of ['', 'x', newId()]) assert.equal(await rowOfTeam(store, teamId, asId<AuditId>(id)), null)
    })

    test('no pack spans two minutes', async () => {
      await using store = await open()
      let at = begun
      await using audit = openAudit({ store, key, now: () => at })
      const teamId = newId<TeamId>()
      for (let n = 1; n <= 160; n++, at += 1_000) record(audit, teamId, n)
      await audit.flush()
      assert.deepEqual(
        (await packs(store)).map(({ first_at, last_at }) => [first_at.slice(11, 19), last_at.slice(11, 19)]),
        [
          ['12:00:00', '12:00:59'],
          ['12:01:00', '12:01:59'],
          ['12:02:00', '12:02:39'],
        ],
      )
      assert.equal((await rowsOf(store, teamId)).length, 160)
    })

    describe('verification after a change by hand', () => {
      /** Returns a store with two packs of over a hundred rows each, and some single rows. Their chain has ended. */
      async function twoPacks() {
        const store = await open()
        const teamId = newId<TeamId>()
        {
          await using audit = openAudit({ store, key })
          for (let n = 0; n < 240; n++) {
            record(audit, teamId, n)
            if (n === 119) await audit.flush()
          }
        }
        assert.deepEqual(await findingsOf(store), [])
        const [first, second] = await packs(store)
        assert.ok(first !== undefined && second !== undefined)
        const set = (values: Partial<Pack>, of = first) =>
          store.db.updateTable('audit_packs').set(values).where('first_id', '=', of.first_id).execute()
        return { store, teamId, first, second, set }
      }

      test('verification names a changed row in any position, whichever field was changed', async () => {
        const { store, first, set } = await twoPacks()
        await using _store = store
        const lines = textOf(first).trimEnd().split('\n')
        for (const index of [0, 41, lines.length - 1]) {
          const values: unknown[] = JSON.parse(lines[index] ?? '')
          for (const [place, value] of values.entries()) {
            // The finding names the row by its id (place 0), so the id is not changed here.
            if (place === 0) continue
            const changed = values.with(place, typeof value === 'number' ? value + 1 : `${String(value)}x`)
            await set({ packed: packedOf(`${lines.with(index, JSON.stringify(changed)).join('\n')}\n`) })
            const found = await findingOf(store)
            assert.deepEqual([found.kind, found.id], ['changed', values[0]])
            assert.match(found.what, new RegExp(`^row ${String(values[0])} \\(number ${first.first_seq + index}, `))
          }
        }
      })

      test('verification names the first row that is affected by a removed, inserted or moved row', async () => {
        const { store, first, set } = await twoPacks()
        await using _store = store
        const lines = textOf(first).trimEnd().split('\n')
        const idOf = (index: number) => /^\["([^"]+)"/.exec(lines[index] ?? '')?.[1]
        const cases: readonly (readonly [readonly string[], number])[] = [
          [lines.toSpliced(10, 1), 11],
          [lines.toSpliced(10, 0, lines[30] ?? ''), 30],
          [lines.with(10, lines[11] ?? '').with(11, lines[10] ?? ''), 11],
        ]
        for (const [changed, named] of cases) {
          await set({ packed: packedOf(`${changed.join('\n')}\n`) })
          assert.equal((await findingOf(store)).id, idOf(named))
        }
        await set({ packed: packedOf(`${lines.slice(0, -1).join('\n')}\n`) })
        assert.equal((await findingOf(store)).kind, 'changed')
      })

      test('verification names rows whose JSON is formatted differently, which a text filter would miss', async () => {
        const { store, first, set } = await twoPacks()
        await using _store = store
        const [line = '', ...others] = textOf(first).split('\n')
        const values = line.slice(2)
        for (const other of [
          `[ "${values}`,
          `["\\u00${(values.codePointAt(0) ?? 0).toString(16)}${values.slice(1)}`,
          line.replace(/(\d),/, '$1e0,'),
          line.replace(/(\d),/, '$1.0,'),
          ` ${line}`,
        ]) {
          assert.deepEqual([other !== line, JSON.parse(other)], [true, JSON.parse(line)])
          await set({ packed: packedOf([other, ...others].join('\n')) })
          assert.equal((await findingOf(store)).id, first.first_id)
        }
      })

      test('verification finds columns of a pack that do not match its rows', async () => {
        const { store, first, second, set } = await twoPacks()
        await using _store = store
        const wrong: readonly Partial<Pack>[] = [
          { first_id: newId<AuditId>() },
          { last_id: newId<AuditId>() },
          { team_id: newId<TeamId>() },
          { first_at: '2020-01-01T00:00:00.000Z' },
          { last_at: '2020-01-01T00:00:00.000Z' },
          { last_seq: first.last_seq - 1 },
          { last_seq: first.last_seq + 1 },
          { last_link: 'x' },
          { marks: `${first.marks.startsWith('x') ? 'y' : 'x'}${first.marks.slice(1)}` },
          { marks: first.marks.slice(0, -8) },
          { marks: `${first.marks}12345678` },
          { marks: '' },
          { packed: new Uint8Array() },
          { packed: Buffer.from('no deflated text') },
          { packed: packedOf('') },
          { packed: packedOf('[]\n') },
          { packed: packedOf('{"id":1}\n') },
          // Inflates to 100 MB.
          { packed: packedOf(Buffer.alloc(100 << 20, 0x20)) },
        ]
        for (const values of wrong) {
          await set(values)
          const found = await findingOf(store)
          assert.equal(found.kind, 'changed', JSON.stringify(values))
          const kept = values.first_id ?? first.first_id
          await store.db.updateTable('audit_packs').set(first).where('first_id', '=', kept).execute()
          assert.deepEqual(await findingsOf(store), [])
        }
        for (const chain of ['another', '']) {
          await set({ chain })
          assert.deepEqual((await findingsOf(store)).map(({ kind }) => kind), ['removed', 'inserted']) // prettier-ignore
        }
        await set({ chain: first.chain, first_seq: second.first_seq + 1 })
        assert.equal((await findingOf(store)).kind, 'removed')
      })

      test('an unreadable pack hides no other row', async () => {
        const { store, teamId, first, set } = await twoPacks()
        await using _store = store
        const before = await rowsOf(store, teamId)
        await set({ packed: Buffer.from('no deflated text') })
        const lost = new Set(textOf(first).match(/(?<=^\[")[^"]+/gm))
        assert.deepEqual(
          await rowsOf(store, teamId),
          before.filter(({ id }) => !lost.has(id)),
        )
      })

      test('verification reports a removed pack, a row inserted between packed rows, and a copy of a pack', async () => {
        const { store, first, second } = await twoPacks()
        await using _store = store
        const remove = (pack: Pack) =>
          store.db.deleteFrom('audit_packs').where('first_id', '=', pack.first_id).execute()
        await remove(first)
        assert.match(
          (await findingOf(store)).what,
          new RegExp(`^rows number ${first.first_seq} to ${first.last_seq} removed`),
        )
        await store.db.insertInto('audit_packs').values(first).execute()
        const single = await store.db.selectFrom('audit').selectAll().limit(1).executeTakeFirstOrThrow()
        const put = { ...single, id: newId<AuditId>(), seq: first.first_seq + 3 }
        await store.db.insertInto('audit').values(put).execute()
        assert.equal((await findingOf(store)).id, put.id)
        await store.db.deleteFrom('audit').where('id', '=', put.id).execute()
        const twin = { ...second, first_id: newId<AuditId>(), first_seq: second.first_seq + 1 }
        await store.db.insertInto('audit_packs').values(twin).execute()
        assert.notEqual((await findingOf(store)).kind, 'removed')
      })

      test('verification reports the removal of all rows, packs, chains and the list of chains', async () => {
        const { store } = await twoPacks()
        await using _store = store
        for (const table of ['audit', 'audit_chains', 'marks', 'audit_packs'] as const) {
          await store.db.deleteFrom(table).execute()
        }
        await store.db
          .insertInto('teams')
          .values({ id: newId<TeamId>(), slug: 't', name: 't', settings: '{}', created_at: '' })
          .execute()
        assert.equal((await findingOf(store)).kind, 'removed')
      })
    })

    describe('pruned', () => {
      /** Writes one pack a day for each of two teams. The second team has a longer retention. */
      async function tenDays() {
        const store = await open()
        let at = begun
        const [short, long] = [newId<TeamId>(), newId<TeamId>()]
        const errors: object[] = []
        const log = { error: (detail: object) => errors.push(detail), warn: () => 0, info: () => 0 }
        const audit = openAudit({
          store,
          key,
          log,
          now: () => at,
          retentionDays: async (team) => (team === long ? 8 : 4),
        })
        for (let n = 0; n < 10; n++, at += day) {
          for (let m = 0; m < 80; m++) record(audit, m % 2 === 0 ? short : long, n * 80 + m)
          await audit.flush()
        }
        return { store, audit, short, long, errors, move: (days: number) => (at += days * day) }
      }

      test("pruning removes a pack when its last row is older than the team's retention, and leaves a signed gap", async () => {
        const { store, audit, short, long, move, errors } = await tenDays()
        await using _store = store
        await using _audit = audit
        await audit.prune()
        const days = async (teamId: TeamId) =>
          new Set((await rowsOf(store, teamId)).map(({ at }) => at.slice(8, 10))).size
        assert.deepEqual([await days(short), await days(long)], [4, 8])
        assert.deepEqual(await findingsOf(store), [])
        move(100)
        await audit.prune()
        assert.deepEqual([await days(short), await days(long), (await packs(store)).length], [0, 0, 0])
        const [report, ...more] = await reportsOf(store)
        assert.deepEqual([report?.finding, report?.pruned, more, errors], [null, 800, [], []])
        record(audit, short, 1)
        await audit.flush()
        assert.deepEqual(await findingsOf(store), [])
      })

      test('pruning keeps an old pack that was changed, and a pack that was made to look old', async () => {
        const { store, audit, errors } = await tenDays()
        await using _store = store
        await using _audit = audit
        const list = await packs(store)
        const [old, young] = [list[0], list.at(-1)]
        assert.ok(old !== undefined && young !== undefined)
        const lines = textOf(old).replace('"ANSWERED"', '"FAILED"')
        const set = (of: Pack, values: Partial<Pack>) =>
          store.db.updateTable('audit_packs').set(values).where('first_id', '=', of.first_id).execute()
        await set(old, { packed: packedOf(lines) })
        await set(young, { last_at: '2020-01-01T00:00:00.000Z' })
        await audit.prune()
        const kept = (await packs(store)).map(({ first_id }) => first_id)
        assert.ok(kept.includes(old.first_id) && kept.includes(young.first_id))
        assert.deepEqual(errors, [{ ids: [old.first_id] }])
        await set(old, { packed: old.packed })
        await set(young, { last_at: young.last_at })
        assert.deepEqual(await findingsOf(store), [])
      })

      test('the packs of a deleted team stay for its retention, and then everything is removed', async () => {
        await using store = await open()
        let at = begun
        const teamId = newId<TeamId>()
        await using audit = openAudit({ store, key, now: () => at, retentionDays: async () => 180 })
        for (let n = 1; n < 80; n++) record(audit, teamId, n)
        await store.write((tx) => audit.teamEnded(tx, teamId, 10))
        for (const [days, left, marks] of [
          [9, 1, 1],
          [11, 0, 1],
          [12, 0, 0],
        ] as const) {
          // prettier-ignore
          at = begun + days * day
          await audit.prune()
          const ended = await store.db.selectFrom('marks').select('name').where('name', 'like', 'days of%').execute()
          assert.deepEqual([(await packs(store)).length, ended.length], [left, marks])
        }
        assert.deepEqual(await findingsOf(store), [])
      })
    })

    test('a batch of packs is written and counted once, even if the answer to its commit was lost', async () => {
      await using store = await open()
      const teamId = newId<TeamId>()
      let [lose, fail] = [0, 0]
      const bad: Store = {
        ...store,
        async commit(work, isolation) {
          if (fail-- > 0) throw new Error('cut off')
          const done = await store.commit(work, isolation)
          if (lose-- > 0) throw new Error('the connection was lost')
          return done
        },
      }
      await using audit = openAudit({ store: bad, key })
      for (const [fails, losses] of [
        [0, 1],
        [2, 0],
        [1, 1],
      ] as const) {
        // prettier-ignore
        ;[fail, lose] = [fails, losses]
        for (let n = 1; n <= 50; n++) audit.record(callers[0] ?? assert.fail(), { teamId, outcome: 'ANSWERED' })
        for (let tries = 0; tries < fails + losses; tries++) await assert.rejects(audit.flush())
        await audit.flush()
      }
      assert.equal((await rowsOf(store, teamId)).length, 150)
      assert.deepEqual(await findingsOf(store), [])
      const usage = await usageOf(audit, teamId)
      assert.equal(usage.reduce((sum, line) => sum + line.queries, 0), 150) // prettier-ignore
    })
  })
}

const bySession: AuditedCall = { action: 'changeAccount', caller: { kind: 'session', accountId: newId<AccountId>() } }
