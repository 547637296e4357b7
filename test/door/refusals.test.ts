// Tests refusals in groups, the list of a person’s own calls, and requests: a person asks for the exposure of a refused
// name, and a manager closes the request.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { z } from 'zod'
import { AuditPage } from '../../src/contract/audit-schemas.ts'
import { ExposureRequest, RefusalGroup } from '../../src/contract/request-schemas.ts'
import type { Person } from '../support/app.ts'
import { openShop, type Shop } from '../support/shop.ts'

type Group = z.infer<typeof RefusalGroup>

describe('refusals and requests', () => {
  let shop: Shop
  let member: Person
  let path: string

  before(async () => {
    shop = await openShop()
    member = await shop.app.person('Mia')
    path = `/teams/${shop.teamId}`
    await shop.app.join(shop.owner, shop.teamId, member)
    const key = await shop.app.key(member)
    await shop.query('SELECT email FROM customers')
    await shop.query('SELECT max(email) FROM customers AS c', key)
    await shop.query('SELECT c.email FROM customers AS c', key)
    await shop.query('SELECT salary FROM payroll', key)
    await shop.query('SELECT nothing FROM orders', key)
    await shop.query('SELECT pg_sleep(9)', key)
    await shop.query('SELECT id FROM customers LIMIT 1', key)
  })
  after(() => shop[Symbol.asyncDispose]())

  const refusals = async (): Promise<Group[]> => {
    const list = await shop.owner.must('GET', `${path}/refusals?days=7`)
    return list.map((each: unknown) => RefusalGroup.strict().parse(each))
  }
  const groupOf = (groups: readonly Group[], name: RegExp) =>
    groups.find(({ blocked }) => name.test(blocked.name)) ?? assert.fail(JSON.stringify(groups))

  test('refusals are grouped by the refused name, the largest group first, with the columns that can be exposed', async () => {
    const groups = await refusals()
    assert.deepEqual(
      groups.map(({ count }) => count),
      groups.map(({ count }) => count).toSorted((a, b) => b - a),
    )
    const email = groupOf(groups, /email/)
    assert.equal(groups[0]?.blocked.kind, 'column')
    const counted = groups.filter(({ column }) => column === 'email')
    assert.equal(
      counted.reduce((sum, { count }) => sum + count, 0),
      3,
    )
    assert.deepEqual([email.schema, email.table, email.column, email.fixable], ['public', 'customers', 'email', true])
    const payroll = groupOf(groups, /payroll/)
    assert.deepEqual([payroll.table, payroll.column, payroll.fixable], ['payroll', undefined, true])
    assert.deepEqual([payroll.count, payroll.keys, payroll.accounts], [1, 1, 1])
    assert.equal(groupOf(groups, /nothing/).fixable, false)
    assert.equal(groupOf(groups, /pg_sleep/).fixable, false)
    const example = await shop.owner.must('GET', `${path}/audit/${email.exampleAuditId}`)
    assert.deepEqual([example.outcome, example.at], ['DENIED', email.lastAt])
  })

  test('refusals and requests leave out datasources that the caller cannot access', async () => {
    const admin = await shop.app.person('Adam')
    await shop.app.join(shop.owner, shop.teamId, admin, 'ADMIN')
    assert.ok((await admin.must('GET', `${path}/refusals`)).length > 0)
    const at = `${path}/datasources/${shop.datasourceId}`
    await shop.owner.must('PATCH', at, { accessMode: 'EXPLICIT' })
    assert.deepEqual(await admin.must('GET', `${path}/refusals`), [])
    assert.deepEqual(await admin.must('GET', `${path}/requests`), [])
    await shop.owner.must('PATCH', at, { accessMode: 'ROLE_BASED' })
  })

  test('everybody reads their own calls, but nobody else’s', async () => {
    const read = async (who: Person, query = '') =>
      AuditPage.parse(await who.must('GET', `/users/me/activity?${query}`))
    const own = (await read(member, 'limit=500')).items
    assert.ok(own.every(({ actor }) => actor.accountId === member.id))
    assert.equal(own.filter(({ action }) => action === 'runQuery').length, 6)
    assert.ok(own.some(({ action }) => action === 'signUp') && own.some(({ action }) => action === 'openTeam'))
    assert.deepEqual(
      own,
      own.toSorted((a, b) => (a.at < b.at || (a.at === b.at && a.id < b.id) ? 1 : -1)),
    )
    assert.deepEqual(
      (await read(member, 'limit=500&kind=query&outcome=DENIED')).items,
      own.filter(({ action, outcome }) => action === 'runQuery' && outcome === 'DENIED'),
    )
    const paged: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const page = await read(member, `limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`)
      paged.push(...page.items.map(({ id }) => id))
      cursor = page.nextCursor
    }
    assert.deepEqual(
      paged,
      own.map(({ id }) => id),
    )
    const stranger = await shop.app.person('Eve')
    assert.deepEqual(
      (await read(stranger)).items.map(({ action }) => action),
      ['signUp'],
    )
  })

  test('a member requests the exposure of a refused name, and a manager saves the smallest exposure that allows it', async () => {
    const at = `${path}/datasources/${shop.datasourceId}`
    const { items } = await member.must('GET', '/users/me/activity?outcome=DENIED&blocked=column&q=max(email)')
    assert.equal(items.length, 1)
    const order = { auditId: items[0].id, why: 'The newsletter needs it.' }
    const made = ExposureRequest.strict().parse(await member.must('POST', `${at}/requests`, order))
    assert.deepEqual([made.name, made.state, made.blocked.kind], ['Mia', 'OPEN', 'column'])
    assert.equal((await member.ask('POST', `${at}/requests`, order)).json.code, 'CONFLICT')
    // A person can make a request only from their own refused call: not from another person's call, an answered call or
    // an unknown call.
    assert.equal((await shop.owner.ask('POST', `${at}/requests`, order)).json.code, 'NOT_FOUND')
    const answered = (await member.must('GET', '/users/me/activity?action=runQuery&outcome=ANSWERED')).items[0].id
    assert.equal((await member.ask('POST', `${at}/requests`, { ...order, auditId: answered })).json.code, 'CONFLICT')
    assert.equal((await member.ask('POST', `${at}/requests`, { ...order, auditId: 'x' })).json.code, 'NOT_FOUND')
    // An exposure cannot allow a function.
    assert.equal((await member.ask('POST', `${at}/query`, { sql: 'SELECT pg_sleep(1)' })).json.code, 'QUERY_DENIED')
    const denied = (await member.must('GET', '/users/me/activity?outcome=DENIED&blocked=function')).items[0].id
    assert.equal((await member.ask('POST', `${at}/requests`, { ...order, auditId: denied })).json.code, 'CONFLICT')

    assert.deepEqual(await shop.owner.must('GET', `${path}/requests?state=OPEN`), [made])
    const { added, ...exposure } = await shop.owner.must('POST', `${at}/exposure/from-refusal/${made.auditId}`)
    assert.deepEqual(added, [{ schema: 'public', table: 'customers', columns: ['email'] }])
    await shop.owner.must('PUT', `${at}/exposure`, exposure)
    const closed = await shop.owner.must('POST', `${path}/requests/${made.id}/close`, { resolution: 'EXPOSED' })
    const { closedAt, ...rest } = ExposureRequest.strict().parse(closed)
    assert.ok(closedAt !== undefined)
    assert.deepEqual(rest, { ...made, state: 'CLOSED', closedBy: shop.owner.id, resolution: 'EXPOSED' })
    assert.equal((await shop.owner.ask('POST', `${path}/requests/${made.id}/close`)).json.code, 'CONFLICT')
    assert.deepEqual(await shop.owner.must('GET', `${path}/requests?state=OPEN`), [])
    const rows = await shop.owner.must('GET', `${path}/audit?action=requestExposure,closeRequest&outcome=ANSWERED`)
    assert.deepEqual(
      rows.items.map((item: { target: { kind: string; id: string } }) => [item.target.kind, item.target.id]),
      [
        ['request', made.id],
        ['request', made.id],
      ],
    )
    // This request is deleted with the account of its author.
    const late = (await member.must('GET', '/users/me/activity?outcome=DENIED&blocked=table')).items[0].id
    await member.must('POST', `${at}/requests`, { auditId: late, why: 'Salaries.' })
    await member.must('POST', `${path}/leave`)
    await member.must('DELETE', '/users/me', { confirm: member.email })
    assert.deepEqual(await shop.owner.must('GET', `${path}/requests`), [])
  })
})
