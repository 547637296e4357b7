// Tests how many requests of a team are kept.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { codeOf, openRooms, someDatasource, someone, type Rooms } from '../../test/support/people.ts'
import { DIALECTS, storeSource } from '../../test/support/stores.ts'
import type { Call } from '../auth/caller.ts'
import { AppError } from '../errors.ts'
import { asId, newId, type AccountId, type AuditId, type DatasourceId, type ExposureRequestId, type TeamId } from '../ids.ts' // prettier-ignore
import { requireMembership } from '../teams/require-membership.ts'
import { createTeam } from '../teams/teams.ts'
import { closeRequest, listRequests, requestExposure } from './exposure-requests.ts'

const KEPT = 200
const OPEN_MAX = 500
const BLOCKED = { kind: 'column', name: 'shop.customers.email' } as const

async function addRequests(
  rooms: Rooms,
  at: { readonly teamId: TeamId; readonly id: DatasourceId },
  account_id: AccountId,
  { closed, open }: { readonly closed: number; readonly open: number },
): Promise<readonly ExposureRequestId[]> {
  const rows = Array.from({ length: closed + open }, (_, n) => ({
    ...{ id: newId<ExposureRequestId>(), team_id: at.teamId, datasource_id: at.id, account_id },
    ...{ audit_id: newId<AuditId>(), why: 'x', blocked: JSON.stringify(BLOCKED), closed_by: null, resolution: null },
    ...{ created_at: new Date(n).toISOString(), closed_at: n < closed ? new Date(n).toISOString() : null, note: null },
  }))
  await rooms.store.write(async (tx) => {
    for (let n = 0; n < rows.length; n += 100) {
      await tx.insertInto('exposure_requests').values(rows.slice(n, n + 100)).execute() // prettier-ignore
    }
  })
  return rows.map(({ id }) => id)
}

async function shopOf(
  rooms: Rooms,
): Promise<{ readonly call: Call; readonly teamId: TeamId; readonly id: DatasourceId }> {
  const call = await someone(rooms, 'ada@example.test')
  const teamId = asId<TeamId>((await createTeam(rooms, call, { name: 'Shop' })).id)
  return { call, teamId, id: await someDatasource(rooms, teamId) }
}

for (const dialect of DIALECTS) {
  test(`on ${dialect}, a team keeps the requests that were closed last, and all open ones`, async () => {
    await using source = await storeSource(dialect)
    await using rooms = await openRooms(source)
    const { call, teamId, id } = await shopOf(rooms)
    const membership = await requireMembership(rooms, call, teamId)
    const ids = await addRequests(rooms, { teamId, id }, call.caller.accountId, { closed: KEPT + 10, open: 5 })
    const open = ids.slice(KEPT + 10)
    const close = (request: ExposureRequestId | undefined) =>
      closeRequest(rooms, call, membership, request ?? assert.fail(), {})
    const closed = async () => (await listRequests(rooms, call, membership, { state: 'CLOSED' })).map((row) => row.id)
    await close(open[0])
    assert.equal((await closed()).length, KEPT + 3)
    await close(open[1])
    assert.deepEqual(new Set(await closed()), new Set([...ids.slice(12, KEPT + 10), open[0], open[1]]))
    const left = await listRequests(rooms, call, membership, { state: 'OPEN' })
    assert.deepEqual(new Set(left.map((row) => row.id)), new Set(open.slice(2)))
  })

  test(`on ${dialect}, a team has a bounded number of open requests`, async () => {
    await using source = await storeSource(dialect)
    await using rooms = await openRooms(source)
    const { call, teamId, id } = await shopOf(rooms)
    const other = await someone(rooms, 'bo@example.test')
    const [last] = await addRequests(rooms, { teamId, id }, other.caller.accountId, { closed: 0, open: OPEN_MAX })
    const query = { ...call, action: 'runQuery' }
    rooms.audit.refused(
      query,
      { teamId, datasourceId: id },
      new AppError('QUERY_DENIED', 'no', { extra: { blocked: BLOCKED } }),
    )
    await rooms.audit.flush()
    const { items } = await rooms.audit.page(teamId, { limit: 1, filter: { actions: ['runQuery'] } })
    const ask = () => requestExposure(rooms, call, { teamId, id }, { auditId: items[0]?.id ?? '', why: 'x' })
    assert.equal(await codeOf(ask()), 'CONFLICT')
    const membership = await requireMembership(rooms, call, teamId)
    await closeRequest(rooms, call, membership, last ?? assert.fail(), {})
    assert.equal((await ask()).state, 'OPEN')
  })
}
