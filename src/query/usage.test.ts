// Tests the usage of a team with many lines.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { callOf, openRooms, someone } from '../../test/support/people.ts'
import { DIALECTS, storeSource } from '../../test/support/stores.ts'
import { turnsDuring } from '../../test/support/turns-during.ts'
import { asId, newId, type AccountId, type ApiKeyId, type DatasourceId, type TeamId } from '../ids.ts'
import { requireMembership } from '../teams/require-membership.ts'
import { createTeam } from '../teams/teams.ts'
import { openBudget } from './budget.ts'
import { usageOf } from './usage.ts'

const LINES = 6_000
const GROUPS = 2_000

for (const dialect of DIALECTS) {
  test(`on ${dialect}, many keys and datasources are summed in portions, and those beyond a maximum together`, async () => {
    await using source = await storeSource(dialect)
    await using rooms = await openRooms(source)
    const call = callOf(rooms, (await someone(rooms, 'ada@example.test')).caller.accountId)
    const teamId = asId<TeamId>((await createTeam(rooms, call, { name: 'Shop' })).id)
    const membership = await requireMembership(rooms, call, teamId)
    const date = new Date().toISOString().slice(0, 10)
    await rooms.store.append(async (tx) => {
      for (let n = 0; n < LINES; n += 500) {
        const rows = Array.from({ length: 500 }, () => ({
          ...{ team_id: teamId, date, chain: 'c', queries: 2, denied: 1, failed: 0, row_count: 3 },
          ...{ datasource_id: newId<DatasourceId>(), account_id: newId<AccountId>(), key_id: newId<ApiKeyId>() },
        }))
        await tx.insertInto('usage_days').values(rows).execute()
      }
    })
    const deps = { ...rooms, budget: openBudget({ store: rooms.store }) }
    let usage: Awaited<ReturnType<typeof usageOf>> | undefined
    const turns = await turnsDuring(async () => (usage = await usageOf(deps, call, membership, { days: 2 })))
    assert.ok(turns >= LINES / 500, `${turns} turns`)
    const { days = [], keys = [], datasources = [] } = usage ?? {}
    assert.equal(days.length, 2)
    assert.deepEqual([keys.length, datasources.length], [GROUPS + 1, GROUPS + 1])
    const rest = { queries: 2 * (LINES - GROUPS), denied: LINES - GROUPS, failed: 0, rows: 3 * (LINES - GROUPS) }
    assert.deepEqual(keys.find(({ accountId }) => accountId === ''), { accountId: '', keyId: null, ...rest }) // prettier-ignore
    assert.deepEqual(datasources.find(({ datasourceId }) => datasourceId === ''), { datasourceId: '', ...rest }) // prettier-ignore
    for (const groups of [days, keys, datasources]) {
      assert.equal(groups.reduce((sum, { queries }) => sum + queries, 0), 2 * LINES) // prettier-ignore
    }
  })
}
