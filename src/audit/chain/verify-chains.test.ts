import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { sql } from 'kysely'
import { AUDIT_KEY, findingOf, findingsOf, reportsOf, usageOf } from '../../../test/support/audited.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../../test/support/stores.ts'
import { AppError } from '../../errors.ts'
import { asId, newId, type AccountId, type ApiKeyId, type AuditId, type TeamId } from '../../ids.ts'
import { openStore, type Store } from '../../store/open.ts'
import { openAudit, type Audit } from '../audit.ts'
import { RowMaker, type AuditedCall } from '../make-rows.ts'
import { sealWith } from './seal.ts'

const key = AUDIT_KEY
const day = 86_400_000
const call: AuditedCall = {
  action: 'runQuery',
  caller: { kind: 'key', accountId: newId<AccountId>(), name: 'Ada', keyId: newId<ApiKeyId>(), keyName: 'CI' },
  client: 'test/1',
}
const bySession: AuditedCall = { action: 'putExposure', caller: { kind: 'session', accountId: newId<AccountId>() } }
const WHAT = {
  target: { kind: 'exposure', id: 'd', name: 'shop' },
  changes: { version: { from: 1, to: 2 } },
} as const
const limited = () => new AppError('RATE_LIMITED', 'no', { extra: { retryAfter: 1 } })

for (const dialect of DIALECTS) {
  describe(`the chain on ${dialect}`, () => {
    let source: StoreSource
    before(async () => {
      source = await storeSource(dialect)
    })
    after(() => source[Symbol.asyncDispose]())

    const open = async () => openStore(await source.config())

    /** Writes `count` rows in one batch. */
    async function write(audit: Audit, teamId: TeamId, count: number): Promise<void> {
      for (let n = 1; n <= count; n++) {
        const query = `SELECT '${n} äöü 😀 \\ "x"'`
        audit.record(call, {
          teamId,
          outcome: 'ANSWERED',
          query,
          printed: query,
          rowCount: n,
          bytes: 2 ** 40,
          durationMs: 0.1 * n,
        })
      }
      await audit.flush()
    }

    /** Returns a store with one ended chain of ten rows, and the id of the fifth row. */
    async function tenRows() {
      const store = await open()
      const teamId = newId<TeamId>()
      {
        await using audit = openAudit({ store, key })
        await write(audit, teamId, 10)
      }
      const { id } = await store.db.selectFrom('audit').select('id').where('seq', '=', 5).executeTakeFirstOrThrow()
      return { store, teamId, id }
    }

    test('the rows of calls, changes and 429s are linked before the process ends', async () => {
      await using store = await open()
      const teamId = newId<TeamId>()
      {
        await using audit = openAudit({ store, key })
        await write(audit, teamId, 3)
        await store.write((tx) => audit.change(tx, bySession, { teamId }, WHAT))
        await assert.rejects(
          store.write(async (tx) => {
            await audit.change(tx, bySession, { teamId }, WHAT)
            throw new Error('rolled back')
          }),
        )
        for (let n = 0; n < 5; n++) audit.refused(call, { teamId }, limited())
        await audit.flush()
        audit.refused(call, { teamId }, limited())
        audit.refused(bySession, {}, new AppError('CONFLICT', 'no'))
      }
      const [report, ...more] = await reportsOf(store)
      assert.deepEqual([report?.rows, report?.finding, report?.head?.seq, more], [6, null, 6, []])
      const folded = await store.db.selectFrom('audit').select('times').where('code', '=', 'RATE_LIMITED').execute()
      assert.deepEqual(
        folded.map(({ times }) => times),
        [6],
      )
    })

    test('each process has its own chain, and a new one after a restart', async () => {
      await using store = await open()
      const teamId = newId<TeamId>()
      for (let start = 0; start < 2; start++) {
        await using one = openAudit({ store, key })
        await using other = openAudit({ store, key })
        await Promise.all([write(one, teamId, 20), write(other, teamId, 20)])
        await Promise.all([write(one, teamId, 20), write(other, teamId, 20)])
      }
      const all = await reportsOf(store)
      assert.deepEqual(
        all.map(({ number, rows, finding }) => [number, rows, finding]),
        [1, 2, 3, 4].map((number) => [number, 40, null]),
      )
    })

    test('two processes count the 429s of a minute in one row, and a 429 after that row was linked gets a new row', async () => {
      await using store = await open()
      const teamId = newId<TeamId>()
      const now = () => Date.parse('2026-01-01T00:00:30.000Z')
      {
        await using other = openAudit({ store, key, now })
        {
          await using one = openAudit({ store, key, now })
          for (const audit of [one, other, one]) {
            audit.refused(call, { teamId }, limited())
            await audit.flush()
          }
        }
        other.refused(call, { teamId }, limited())
      }
      assert.deepEqual(await findingsOf(store), [])
      const rows = await store.db.selectFrom('audit').select(['times', 'seq']).orderBy('times').execute()
      assert.deepEqual(
        rows.map(({ times, seq }) => [times, seq !== null]),
        [
          [1, true],
          [3, true],
        ],
      )
    })

    test('with another key, every chain fails verification', async () => {
      const { store } = await tenRows()
      await using _store = store
      assert.deepEqual(await findingsOf(store), [])
      const all = await reportsOf(store, new Uint8Array(32).fill(8))
      assert.ok(all.length > 0 && all.every((report) => report.finding !== null))
    })

    describe('verification after a change by hand', () => {
      for (const [column, value] of [
        ['query', sql.lit('SELECT 2')],
        ['outcome', sql.lit('DENIED')],
        ['at', sql.lit('2020-01-01T00:00:00.000Z')],
        ['account_id', sql.lit('somebody')],
        ['key_id', sql`null`],
        ['team_id', sql.lit('another')],
        ['row_count', sql.lit(0)],
        ['bytes', sql`null`],
        ['duration_ms', sql.lit(7)],
        ['times', sql.lit(2)],
        ['client', sql.lit('')],
        ['redacted', sql.lit(1)],
        ['detail', sql.lit('{"by":"Eve"}')],
        ['link', sql.lit('x')],
      ] as const) {
        test(`verification names a row whose ${column} was changed`, async () => {
          const { store, id } = await tenRows()
          await using _store = store
          await sql`update audit set ${sql.ref(column)} = ${value} where id = ${id}`.execute(store.db)
          const found = await findingOf(store)
          assert.deepEqual([found.kind, found.id], ['changed', id])
          assert.match(found.what, column === 'link' ? /was changed or replaced/ : /was changed$/)
        })
      }

      test('verification reports a removed row by its number and its neighbours', async () => {
        const { store, id } = await tenRows()
        await using _store = store
        await store.db.deleteFrom('audit').where('id', '=', id).execute()
        const found = await findingOf(store)
        assert.equal(found.kind, 'removed')
        assert.match(found.what, /^row number 5 removed, after 20.+, before row \S+ of 20/)
      })

      test('verification reports rows removed at the end, and the removal of all rows', async () => {
        const { store } = await tenRows()
        await using _store = store
        await store.db.deleteFrom('audit').where('seq', '>', 8).execute()
        assert.match((await findingOf(store)).what, /^rows number 9 to 10 removed, after .+, at the end$/)
        await store.db.deleteFrom('audit').execute()
        assert.match((await findingOf(store)).what, /^rows number 1 to 10 removed, at the end$/)
      })

      test('verification names inserted rows: after the end, without a chain, in an unknown chain, not linked yet, at number 0', async () => {
        const { store, teamId } = await tenRows()
        await using _store = store
        const { chain } = await store.db.selectFrom('audit_chains').select('chain').executeTakeFirstOrThrow()
        const row = new RowMaker(Date.now).of(call, { teamId, outcome: 'ANSWERED' })
        for (const [place, what] of [
          [{ chain, seq: 11, link: 'x' }, /after the end of its chain, which has 10 rows/],
          [{ chain, seq: 0, link: 'x' }, /is in the place of another row/],
          [{ chain: null, seq: null, link: null }, /has no chain, but is younger than the first chain/],
          [{ chain: 'mine', seq: 1, link: 'x' }, /belongs to a chain that does not exist/],
          [{ chain: '', seq: 1, link: 'x' }, /belongs to a chain that does not exist/],
          [{ chain, seq: null, link: null }, /not written by this service/],
          [{ chain, seq: null, link: sealWith(new Uint8Array(32)).alone(row) }, /not written by this service/],
        ] as const) {
          await store.db
            .insertInto('audit')
            .values({ ...row, ...place })
            .execute()
          const found = await findingOf(store)
          assert.deepEqual([found.kind, found.id], ['inserted', row.id])
          assert.match(found.what, what)
          await store.db.deleteFrom('audit').where('id', '=', row.id).execute()
        }
        assert.deepEqual(await findingsOf(store), [])
      })

      test('verification reports an inserted row that claims to be older than the chains, and an emptied store', async () => {
        const { store, teamId } = await tenRows()
        await using _store = store
        const row = new RowMaker(() => Date.now() - 5 * day).of(call, { teamId, outcome: 'ANSWERED' })
        await store.db.insertInto('audit').values(row).execute()
        const found = await findingOf(store)
        assert.deepEqual([found.kind, found.id], ['inserted', null])
        assert.match(found.what, /there are 1, and there were 0 before the first chain/)
        await store.db.deleteFrom('audit').execute()
        await store.db.deleteFrom('audit_chains').execute()
        await store.db.deleteFrom('marks').where('name', '=', 'audit chains').execute()
        assert.deepEqual(await reportsOf(store), [])
        const team = { id: teamId, name: 'T', slug: 't', settings: '{}', created_at: row.at }
        await store.db.insertInto('teams').values(team).execute()
        assert.match((await findingOf(store)).what, /every row and the list of chains were removed/)
      })

      test('verification reports the first of two swapped rows, and a removed row if one is put back and the other deleted', async () => {
        const { store } = await tenRows()
        await using _store = store
        await sql`update audit set seq = 100 where seq = 6`.execute(store.db)
        await sql`update audit set seq = 6 where seq = 5`.execute(store.db)
        await sql`update audit set seq = 5 where seq = 100`.execute(store.db)
        assert.match((await findingOf(store)).what, /number 5.+was changed or replaced/)
        await store.db.deleteFrom('audit').where('seq', '=', 5).execute()
        await sql`update audit set seq = 5 where seq = 6`.execute(store.db)
        const found = await findingOf(store)
        assert.equal(found.id, null)
        assert.match(found.what, /^row number 6 removed/)
      })

      test('without the unique index, verification finds a second row with the same number', async () => {
        const { store, teamId } = await tenRows()
        await using _store = store
        await sql`drop index audit_in_chain`.execute(store.db)
        const five = await store.db.selectFrom('audit').selectAll().where('seq', '=', 5).executeTakeFirstOrThrow()
        const twin = { ...five, id: asId<AuditId>(`${five.id.slice(0, -1)}g`), team_id: teamId }
        await store.db.insertInto('audit').values(twin).execute()
        const found = await findingOf(store)
        assert.deepEqual([found.kind, found.id], ['inserted', twin.id])
      })

      test('verification reports a changed end of a chain, a removed chain, and a chain that was removed with all of its rows', async () => {
        const { store } = await tenRows()
        await using _store = store
        await sql`update audit_chains set head_seq = 9`.execute(store.db)
        await store.db.deleteFrom('audit').where('seq', '=', 10).execute()
        assert.match((await findingOf(store)).what, /the signed end of the chain was changed/)
        await store.db.deleteFrom('audit_chains').execute()
        assert.deepEqual(
          (await findingsOf(store)).map(({ kind }) => kind),
          ['removed', 'inserted'],
        )
        await store.db.deleteFrom('audit').execute()
        assert.match((await findingOf(store)).what, /chain number 1 was removed, with all of its rows/)
      })

      test('verification reports a changed or removed list of chains, and the list is never signed again', async () => {
        const { store, teamId } = await tenRows()
        await using _store = store
        const mark = store.db.selectFrom('marks').select('value').where('name', '=', 'audit chains')
        const { value } = await mark.executeTakeFirstOrThrow()
        for (const bad of [value.replace('"last":1', '"last":2'), '{}', 'x', null]) {
          if (bad === null) await store.db.deleteFrom('marks').where('name', '=', 'audit chains').execute()
          else await store.db.updateTable('marks').set({ value: bad }).where('name', '=', 'audit chains').execute()
          {
            await using audit = openAudit({ store, key })
            await write(audit, teamId, 1)
          }
          assert.match((await findingOf(store)).what, /the list of chains was (changed|removed)/)
          assert.equal((await mark.executeTakeFirst())?.value, bad ?? undefined)
        }
      })

      test('a process whose chain was changed by somebody starts a new chain and keeps every row', async () => {
        await using store = await open()
        const teamId = newId<TeamId>()
        await using audit = openAudit({ store, key })
        await write(audit, teamId, 2)
        await sql`update audit_chains set head_link = 'x'`.execute(store.db)
        await write(audit, teamId, 2)
        await store.db.deleteFrom('audit_chains').where('number', '=', 2).execute()
        await write(audit, teamId, 2)
        assert.equal((await audit.page(teamId, { limit: 99 })).items.length, 6)
        const all = await reportsOf(store)
        assert.deepEqual(
          all.map(({ number, finding }) => [number, finding?.kind]),
          [
            [2, 'removed'],
            [1, 'changed'],
            [3, undefined],
            [0, 'inserted'],
          ],
        )
      })
    })

    test('verification names a row inserted at the next number of the chain, and the audit still writes rows', async () => {
      await using store = await open()
      const teamId = newId<TeamId>()
      await using audit = openAudit({ store, key })
      await write(audit, teamId, 2)
      const { chain } = await store.db.selectFrom('audit_chains').select('chain').executeTakeFirstOrThrow()
      const row = new RowMaker(Date.now).of(call, { outcome: 'ANSWERED' })
      await store.db
        .insertInto('audit')
        .values({ ...row, chain, seq: 3, link: 'x' })
        .execute()
      await assert.rejects(write(audit, teamId, 2))
      assert.equal((await audit.page(teamId, { limit: 99 })).items.length, 4)
      assert.equal((await findingOf(store)).id, row.id)
    })

    describe('pruned', () => {
      const start = Date.parse('2026-01-01T00:00:00.000Z')

      /**
       * Writes a call and a change on each of twenty days. The calls alternate between two teams, and the second team
       * has a longer retention. Then sets the clock to the next day.
       */
      async function twentyDays() {
        const store = await open()
        let at = start
        const [short, long] = [newId<TeamId>(), newId<TeamId>()]
        const retentionDays = async (team: TeamId | null) => (team === long ? 15 : 10)
        const audit = openAudit({ store, key, now: () => at, retentionDays })
        for (let n = 0; n < 20; n++) {
          at = start + n * day
          await write(audit, n % 2 === 0 ? short : long, 1)
          await store.write((tx) => audit.change(tx, bySession, n % 4 === 1 ? {} : { teamId: short }, WHAT))
        }
        await audit.flush()
        at += day
        return { store, audit, short, long, move: (days: number) => (at += days * day) }
      }

      test('pruning leaves signed gaps that verification accepts, and merges them in the end', async () => {
        const { store, audit, move } = await twentyDays()
        await using _store = store
        await using _audit = audit
        await audit.prune()
        const [report, ...more] = await reportsOf(store)
        assert.deepEqual([report?.finding, more], [null, []])
        assert.deepEqual([report?.rows, report?.pruned], [23, 17])
        assert.ok((await store.db.selectFrom('audit_gaps').select('chain').execute()).length > 1)
        move(6)
        await audit.prune()
        assert.deepEqual(await findingsOf(store), [])
        move(100)
        await audit.prune()
        assert.deepEqual(await findingsOf(store), [])
        const gaps = await store.db.selectFrom('audit_gaps').select(['first_seq', 'last_seq']).execute()
        assert.deepEqual(
          gaps.map((gap) => [gap.first_seq, gap.last_seq]),
          [[1, 40]],
        )
        assert.deepEqual(await store.db.selectFrom('audit').select('id').execute(), [])
      })

      test('verification finds rows that were removed by hand, removed gaps and changed gaps', async () => {
        const { store, audit } = await twentyDays()
        await using _store = store
        await using _audit = audit
        await audit.prune()
        const gap = await store.db.selectFrom('audit_gaps').selectAll().orderBy('first_seq').executeTakeFirstOrThrow()
        await store.db
          .updateTable('audit_gaps')
          .set({ last_seq: gap.last_seq + 1 })
          .where('first_seq', '=', gap.first_seq)
          .execute()
        assert.match((await findingOf(store)).what, /the gap that replaces rows 1 to \d+ was changed/)
        await store.db.deleteFrom('audit_gaps').where('first_seq', '=', gap.first_seq).execute()
        assert.match((await findingOf(store)).what, /^rows number 1 to \d+ removed/)
        await store.db.insertInto('audit_gaps').values(gap).execute()
        assert.deepEqual(await findingsOf(store), [])
        const last = await store.db
          .selectFrom('audit')
          .select(({ fn }) => fn.max('seq').as('seq'))
          .executeTakeFirstOrThrow()
        await store.db
          .deleteFrom('audit')
          .where('seq', '=', Number(last.seq) - 2)
          .execute()
        assert.match((await findingOf(store)).what, /^row number 38 removed/)
      })

      test('pruning keeps an old row that was changed, and a row that was made to look old', async () => {
        const { store, audit, short, move } = await twentyDays()
        await using _store = store
        await using _audit = audit
        const rows = await store.db.selectFrom('audit').select(['id', 'seq']).orderBy('seq').execute()
        const [old, young] = [rows[2]?.id ?? asId<AuditId>(''), rows[36]?.id ?? asId<AuditId>('')]
        await sql`update audit set outcome = 'DENIED' where id = ${old}`.execute(store.db)
        await sql`update audit set at = '2025-01-01T00:00:00.000Z' where id = ${young}`.execute(store.db)
        move(1)
        await audit.prune()
        const kept = (await store.db.selectFrom('audit').select('id').execute()).map((row) => row.id)
        assert.ok(kept.includes(old) && kept.includes(young) && short)
        assert.equal((await findingOf(store)).id, old)
        await sql`update audit set outcome = 'ANSWERED' where id = ${old}`.execute(store.db)
        assert.equal((await findingOf(store)).id, young)
      })

      test('pruning deletes chains without rows, except the newest chain', async () => {
        await using store = await open()
        let at = start
        const teamId = newId<TeamId>()
        const deps = { store, key, now: () => at, retentionDays: async () => 10 }
        for (let n = 0; n < 4; n++) {
          await using audit = openAudit(deps)
          await write(audit, teamId, 3)
          at += 8 * day
        }
        await using audit = openAudit(deps)
        await audit.prune()
        assert.deepEqual(
          (await reportsOf(store)).map(({ number, finding }) => [number, finding]),
          [[4, null]],
        )
        at += 100 * day
        await audit.prune()
        assert.deepEqual(
          (await reportsOf(store)).map(({ number, finding, pruned }) => [number, finding, pruned]),
          [[4, null, 3]],
        )
        await write(audit, teamId, 1)
        assert.deepEqual(await findingsOf(store), [])
      })

      test('the rows of a deleted team stay for its retention, and then everything is removed', async () => {
        await using store = await open()
        let at = start
        const teamId = newId<TeamId>()
        await using audit = openAudit({ store, key, now: () => at, retentionDays: async () => 10 })
        await write(audit, teamId, 2)
        assert.equal((await usageOf(audit, teamId)).length, 1)
        await store.write((tx) => audit.teamEnded(tx, teamId, 40))
        const left = async () => (await store.db.selectFrom('audit').select('id').execute()).length
        at = start + 39 * day
        await audit.prune()
        assert.deepEqual(await usageOf(audit, teamId), [])
        assert.equal(await left(), 2)
        at = start + 41 * day
        await audit.prune()
        assert.equal(await left(), 0)
        await audit.prune()
        const marks = await store.db.selectFrom('marks').select('name').where('name', 'like', '%team%').execute()
        assert.deepEqual(marks, [])
      })

      test('many deleted teams are read in portions, and each is forgotten when it has no rows', async () => {
        await using store = await open()
        await using audit = openAudit({ store, key, now: () => start, retentionDays: async () => 10 })
        const marks = Array.from({ length: 1_003 }, () => ({
          name: `days of the audit of the ended team ${newId<TeamId>()}`,
          value: '9',
        }))
        await store.write(async (tx) => {
          for (const mark of marks) await tx.insertInto('marks').values(mark).execute()
        })
        await audit.prune()
        const left = await store.db.selectFrom('marks').select('name').where('name', 'like', '%team%').execute()
        assert.deepEqual(left, [])
      })

      test('a forged retention does not affect a team that exists, and an invalid one does not stop pruning', async () => {
        await using store = await open()
        let at = start
        const [lives, ended] = [newId<TeamId>(), newId<TeamId>()]
        await using audit = openAudit({ store, key, now: () => at, retentionDays: async () => 10 })
        await write(audit, lives, 2)
        await write(audit, ended, 2)
        const team = { id: lives, name: 'T', slug: 't', settings: '{}', created_at: new Date(at).toISOString() }
        await store.db.insertInto('teams').values(team).execute()
        for (const [teamId, value] of [
          [lives, '1'],
          [ended, 'x'],
        ] as const) {
          await store.db
            .insertInto('marks')
            .values({ name: `days of the audit of the ended team ${teamId}`, value })
            .execute()
        }
        const left = async () => (await store.db.selectFrom('audit').select('id').execute()).length
        at = start + 9 * day
        await audit.prune()
        assert.equal(await left(), 4)
        at = start + 11 * day
        await audit.prune()
        assert.equal(await left(), 0)
      })
    })

    describe('interrupted', () => {
      test('the next process links rows that a killed process has not linked, and logs this', async () => {
        await using store = await open()
        const teamId = newId<TeamId>()
        // A killed process would not dispose its audit, so this one is never disposed.
        const killed = openAudit({ store, key })
        await write(killed, teamId, 2)
        await store.write((tx) => killed.change(tx, bySession, { teamId }, WHAT))
        const said: unknown[] = []
        const log = {
          info: () => undefined,
          error: (...all: unknown[]) => said.push(all),
          warn: (detail: object) => said.push(detail),
        }
        const later = Date.now() + 5 * 60_000
        await using audit = openAudit({ store, key, log, now: () => later })
        await audit.flush()
        assert.deepEqual(said, [{ rows: 1 }])
        const all = await reportsOf(store)
        assert.deepEqual(
          all.map(({ rows, finding }) => [rows, finding]),
          [
            [2, null],
            [1, null],
          ],
        )
      })

      test('a forged batch number does not make a batch count as written', async () => {
        await using store = await open()
        const teamId = newId<TeamId>()
        let fails = 0
        const failing: Store = {
          ...store,
          commit: async (work, isolation) => {
            if (fails-- > 0) throw new Error('cut off')
            return await store.commit(work, isolation)
          },
        }
        await using audit = openAudit({ store: failing, key })
        await write(audit, teamId, 2)
        fails = 1
        await assert.rejects(write(audit, teamId, 2), /cut off/)
        await sql`update audit_chains set batch = batch + 1`.execute(store.db)
        assert.equal((await audit.page(teamId, { limit: 99 })).items.length, 4)
      })

      test('the next process does not link a row that somebody inserted without a number', async () => {
        await using store = await open()
        const row = new RowMaker(() => Date.now() - day).of(call, { outcome: 'ANSWERED' })
        await store.db
          .insertInto('audit')
          .values({ ...row, chain: 'x', seq: null, link: 'x' })
          .execute()
        await using audit = openAudit({ store, key })
        await audit.flush()
        const { seq } = await store.db
          .selectFrom('audit')
          .select('seq')
          .where('id', '=', row.id)
          .executeTakeFirstOrThrow()
        assert.equal(seq, null)
        assert.equal((await findingOf(store)).id, row.id)
      })

      test('a batch is written once, even if the answer to its commit was lost', async () => {
        await using store = await open()
        const teamId = newId<TeamId>()
        let lose = 0
        const losing: Store = {
          ...store,
          async commit(work, isolation) {
            const done = await store.commit(work, isolation)
            if (lose-- > 0) throw new Error('the connection was lost')
            return done
          },
        }
        await using audit = openAudit({ store: losing, key })
        for (const before of [0, 3]) {
          lose = 2
          audit.refused(call, { teamId }, limited())
          await assert.rejects(write(audit, teamId, 3), /lost/)
          await assert.rejects(audit.flush(), /lost/)
          assert.equal(
            (await audit.page(teamId, { limit: 99 })).items.filter((item) => item.code === undefined).length,
            before + 3,
          )
        }
        assert.deepEqual(await findingsOf(store), [])
        const { items } = await audit.page(teamId, { limit: 99 })
        // One row counts the refusals of a minute. There are two rows if a minute ends during the test.
        const refused = items.filter((item) => item.code === 'RATE_LIMITED')
        assert.equal(
          refused.reduce((sum, { times = 1 }) => sum + times, 0),
          2,
        )
        assert.equal(
          (await usageOf(audit, teamId)).reduce((sum, line) => sum + line.queries, 0),
          8,
        )
      })
    })

    test('rows older than the chains are reported separately and pruned by age', async () => {
      await using store = await open()
      const teamId = newId<TeamId>()
      const row = new RowMaker(() => Date.now() - 5 * day).of(call, { teamId, outcome: 'ANSWERED' })
      await store.db.insertInto('audit').values(row).execute()
      await using audit = openAudit({ store, key, retentionDays: async () => 3 })
      await write(audit, teamId, 1)
      assert.deepEqual(
        (await reportsOf(store)).map(({ chain, rows, finding }) => [chain === 'before the chains', rows, finding]),
        [
          [false, 1, null],
          [true, 1, null],
        ],
      )
      await audit.prune()
      assert.equal((await reportsOf(store)).length, 1)
    })
  })
}
