// Somebody without the key can put the same rows into other packs. The links of the rows still fit, but readers would
// miss some rows.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { AUDIT_KEY, findingsOf, rowsOf } from '../../test/support/audited.ts'
import { DIALECTS, storeSource, type StoreSource } from '../../test/support/stores.ts'
import { newId, type AccountId, type ApiKeyId, type TeamId } from '../ids.ts'
import { openStore, type Store } from '../store/open.ts'
import { openAudit, type Audit } from './audit.ts'
import { textOf, type Stored } from './chain/seal.ts'
import type { Pack } from './packs.ts'
import type { AuditedCall } from './make-rows.ts'

const key = AUDIT_KEY
const minute = 60_000
const begun = Date.parse('2026-03-01T12:00:00.000Z')
const keyId = newId<ApiKeyId>()
const call: AuditedCall = { action: 'runQuery', caller: { kind: 'key', accountId: newId<AccountId>(), keyId } }

const packs = (store: Store) =>
  store.db.selectFrom('audit_packs').selectAll().orderBy('chain').orderBy('first_seq').execute()
const textIn = ({ packed }: Pack) => inflateRawSync(packed).toString()
const packedOf = (text: string) => deflateRawSync(text)

/** Joins two packs without the key. */
function joined(one: Pack, other: Pack): Pack {
  const { last_id, last_at, last_seq, last_link } = other
  const packed = packedOf(textIn(one) + textIn(other))
  return { ...one, last_id, last_at, last_seq, last_link, marks: one.marks + other.marks, packed }
}

/** Needs no key, because the full links of single rows are stored. */
function packOf(rows: readonly Stored[]): Pack {
  const [first, last] = [rows[0], rows.at(-1)]
  assert.ok(
    typeof first?.team_id === 'string' && first.chain !== null && first.seq !== null && typeof last?.seq === 'number',
  )
  return {
    first_id: first.id,
    last_id: last.id,
    team_id: first.team_id,
    first_at: first.at,
    last_at: last.at,
    chain: first.chain,
    first_seq: first.seq,
    last_seq: last.seq,
    last_link: last.link ?? '',
    marks: rows.map(({ link }) => link?.slice(0, 8)).join(''),
    packed: packedOf(rows.map((row) => `${textOf(row)}\n`).join('')),
  }
}

for (const dialect of DIALECTS) {
  describe(`packs made without the key on ${dialect}`, () => {
    let source: StoreSource
    before(async () => {
      source = await storeSource(dialect)
    })
    after(() => source[Symbol.asyncDispose]())
    const open = async () => openStore(await source.config())
    const teamId = newId<TeamId>()

    async function answered(audit: Audit, count: number): Promise<void> {
      for (let n = 0; n < count; n++) audit.record(call, { teamId, outcome: 'ANSWERED', query: `SELECT ${n}` })
      await audit.flush()
    }

    /** Writes one pack at each of these times. */
    async function packsAt(times: readonly number[]) {
      const store = await open()
      let at = begun
      await using audit = openAudit({ store, key, now: () => at })
      for (const time of times) {
        at = begun + time
        await answered(audit, 40)
      }
      return store
    }

    const replace = async (store: Store, old: readonly Pack[], pack: Pack) => {
      const ids = old.map(({ first_id }) => first_id)
      await store.db.deleteFrom('audit_packs').where('first_id', 'in', ids).execute()
      await store.db.insertInto('audit_packs').values(pack).execute()
    }

    for (const [what, times] of [
      ['of two minutes', [0, 5 * minute]],
      ['with a clock set back between them', [30_000, 0]],
    ] as const) {
      test(`verification finds two joined packs ${what}, in which readers would miss rows`, async () => {
        await using store = await packsAt(times)
        const [one, other] = await packs(store)
        assert.ok(one !== undefined && other !== undefined)
        await replace(store, [one, other], joined(one, other))
        const found = await findingsOf(store)
        assert.deepEqual(found.map(({ kind, id }) => [kind, id]), [['changed', one.first_id]]) // prettier-ignore
        assert.match(found[0]?.what ?? '', /^the pack of rows number 1 to 80 /)
      })
    }

    test('verification finds a forged pack of refused rows, which a filter by outcome would miss', async () => {
      await using store = await open()
      {
        await using audit = openAudit({ store, key })
        for (let n = 0; n < 5; n++) audit.record(call, { teamId, outcome: 'DENIED', code: 'QUERY_DENIED' })
      }
      const rows = await store.db.selectFrom('audit').selectAll().orderBy('seq').execute()
      await store.db.deleteFrom('audit').execute()
      await store.db.insertInto('audit_packs').values(packOf(rows)).execute()
      assert.deepEqual((await findingsOf(store)).map(({ kind, id }) => [kind, id]), [['changed', rows[0]?.id]]) // prettier-ignore
    })

    test('verification finds rows and packs that were inserted again after their removal, and pruning still works', async () => {
      await using store = await open()
      let at = begun
      const errors: object[] = []
      const log = { error: (detail: object) => errors.push(detail), warn: () => 0, info: () => 0 }
      const retentionDays = async (team: TeamId | null) => (team === teamId ? 1 : 100)
      await using audit = openAudit({ store, key, log, now: () => at, retentionDays })
      audit.record(call, { teamId: newId<TeamId>(), outcome: 'ANSWERED' })
      await audit.flush()
      await answered(audit, 5)
      const rows = await store.db.selectFrom('audit').selectAll().where('team_id', '=', teamId).orderBy('seq').execute()
      await answered(audit, 40)
      at += 3 * 86_400_000
      await audit.prune()
      for (const again of ['audit', 'audit_packs'] as const) {
        if (again === 'audit') await store.db.insertInto('audit').values(rows).execute()
        else await store.db.insertInto('audit_packs').values(packOf(rows)).execute()
        await answered(audit, 40)
        at += 3 * 86_400_000
        await audit.prune()
        assert.equal((await packs(store)).length, again === 'audit' ? 0 : 1)
        assert.deepEqual((await findingsOf(store)).map(({ kind, id }) => [kind, id]), [['inserted', rows[0]?.id]]) // prettier-ignore
        await store.db.deleteFrom(again).where('team_id', '=', teamId).execute()
      }
      assert.deepEqual(errors, [{ ids: rows.map(({ id }) => id) }, { ids: [rows[0]?.id] }])
      assert.deepEqual(await findingsOf(store), [])
    })

    test('a line of more than a megabyte is not packed, so that packs stay small', async () => {
      await using store = await open()
      await using audit = openAudit({ store, key })
      const [short, long] = ['SELECT 1', 'x'.repeat(1 << 20)]
      for (let n = 0; n < 120; n++) {
        audit.record(call, { teamId, outcome: 'ANSWERED', query: n % 60 === 59 ? long : short })
      }
      await audit.flush()
      assert.deepEqual((await store.db.selectFrom('audit').select('query').execute()).map(({ query }) => query), [long, long]) // prettier-ignore
      assert.deepEqual((await rowsOf(store, teamId)).map(({ query }) => query === long).lastIndexOf(true), 60)
      assert.deepEqual(await findingsOf(store), [])
    })
  })
}
