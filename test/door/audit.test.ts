// The audit has one row for every call that reached a datasource and for every change, even if it was refused. Only
// managers read the audit, and only the rows of datasources that they reach.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { AuditPage } from '../../src/contract/audit-schemas.ts'
import type { Person } from '../support/app.ts'
import { openShop, type Shop } from '../support/shop.ts'

interface Row {
  readonly action: string
  readonly outcome: string
  readonly code?: string
  readonly via: string
  readonly datasourceId?: string
  readonly query?: string
}

describe('the audit', () => {
  let shop: Shop
  let path: string
  let at: string
  before(async () => {
    shop = await openShop()
    path = `/teams/${shop.teamId}`
    at = `${path}/datasources/${shop.datasourceId}`
  })
  after(() => shop[Symbol.asyncDispose]())

  const audit = async (who: Person = shop.owner, page = '?limit=500'): Promise<readonly Row[]> =>
    (await who.must('GET', `${path}/audit${page}`)).items
  /** The oldest row comes first. */
  async function rowsAddedBy(call: () => Promise<unknown>): Promise<readonly (readonly (string | undefined)[])[]> {
    const before = (await audit()).length
    await call()
    const rows = await audit()
    return rows
      .slice(0, rows.length - before)
      .reverse()
      .map((row) => [row.action, row.outcome, row.code])
  }
  const query = (body: unknown) => shop.app.ask('POST', `${at}/query`, { token: shop.key, body })

  test('the audit records answered, refused and failed queries with their text', async () => {
    assert.deepEqual(await rowsAddedBy(() => query({ sql: 'SELECT id FROM customers LIMIT 1' })), [
      ['runQuery', 'ANSWERED', undefined],
    ])
    const { items } = await shop.owner.must('GET', `${path}/audit?limit=1`)
    assert.deepEqual(AuditPage.shape.items.parse(items), items)
    const [row] = items
    assert.deepEqual(
      [row.via, row.query, row.rowCount, row.datasourceId],
      ['API_KEY', 'SELECT id FROM customers LIMIT 1', 1, shop.datasourceId],
    )
    assert.deepEqual(
      [row.actor.accountId, typeof row.actor.keyId, row.printed.includes('customers')],
      [shop.owner.id, 'string', true],
    )
    for (const [body, outcome, code] of [
      [{ sql: 'SELECT email FROM customers' }, 'DENIED', 'QUERY_DENIED'],
      [{ sql: 'SELEC 1' }, 'FAILED', 'INVALID_QUERY'],
      [{ sql: 'SELECT 1/0' }, 'FAILED', 'QUERY_FAILED'],
      [{ sql: 1 }, 'FAILED', 'INVALID_REQUEST'],
    ] as const) {
      assert.deepEqual(await rowsAddedBy(() => query(body)), [['runQuery', outcome, code]])
    }
  })

  test('the audit records a direct call of an operation like the same call over HTTP, except for via, client and request', async () => {
    const calls: readonly (readonly [string, string, string, unknown])[] = [
      [shop.key, 'POST', '/query', { sql: 'SELECT id FROM customers LIMIT 1' }],
      [shop.key, 'POST', '/query', { sql: 'SELECT email FROM customers' }],
      [shop.key, 'POST', '/query', { sql: 'SELEC 1' }],
      [shop.key, 'GET', '/schema', undefined],
      [shop.key, 'GET', '/schema?full=2', undefined],
      [shop.owner.jwt, 'POST', '/check', { sql: 'SELECT 1' }],
      [shop.owner.jwt, 'GET', '/exposure', undefined],
      [shop.owner.jwt, 'PATCH', '', { minRole: 'NOBODY' }],
      [shop.owner.jwt, 'POST', '/enable', undefined],
      [shop.owner.jwt, 'PUT', '/exposure', { tables: [{ schema: 'public', table: 'nosuch', columns: null }] }],
    ]
    for (const [token, method, rest, body] of calls) {
      const newest = async () => {
        const {
          id: _id,
          at: _at,
          durationMs: _ms,
          requestId: _request,
          ...row
        } = (await shop.owner.must('GET', `${path}/audit?limit=1`)).items[0]
        return row
      }
      const answered = await shop.app.ask(method, at + rest, { token, body })
      const { bytes: httpBytes, ...http } = await newest()
      const { json } = await shop.app.operate(method, at + rest, { token, body })
      assert.equal(json?.code === undefined, answered.status < 300)
      const { actor, bytes, ...operation } = await newest()
      assert.deepEqual([operation.via, actor.client], ['CONNECTOR', 'test/1.0'])
      assert.deepEqual(
        { ...operation, via: http.via, actor: { ...actor, client: http.actor.client } },
        http,
        `${method} ${rest}`,
      )
      // The answer contains `durationMs`, which differs from run to run. So its digits do not count.
      const withoutDuration = (all: number | undefined, body: { durationMs?: number } | undefined) =>
        all === undefined ? undefined : all - String(body?.durationMs).length
      assert.equal(withoutDuration(bytes, json), withoutDuration(httpBytes, answered.json))
    }
  })

  test('the audit records reads of a datasource, and checks of a query', async () => {
    for (const [action, method, rest, body] of [
      ['describeDatasource', 'GET', '/schema', undefined],
      ['viewAsAgent', 'GET', '/agent-view', undefined],
      ['getDatasource', 'GET', '', undefined],
      ['getExposure', 'GET', '/exposure', undefined],
      ['getAccess', 'GET', '/access', undefined],
      ['checkQuery', 'POST', '/check', { sql: 'SELECT 1' }],
    ] as const) {
      assert.deepEqual(await rowsAddedBy(() => shop.owner.must(method, at + rest, body)), [
        [action, 'ANSWERED', undefined],
      ])
    }
  })

  test('the audit records changes, also if they are refused for a role, a body or a conflict', async () => {
    const member = await shop.app.person('Mia')
    await shop.app.join(shop.owner, shop.teamId, member)
    for (const [who, method, rest, body, row] of [
      [shop.owner, 'PATCH', at, { name: 'renamed' }, ['changeDatasource', 'ANSWERED', undefined]],
      [shop.owner, 'PATCH', at, { nonsense: 1 }, ['changeDatasource', 'FAILED', 'INVALID_REQUEST']],
      [shop.owner, 'PATCH', at, { port: 1 }, ['changeDatasource', 'FAILED', 'INVALID_REQUEST']],
      [member, 'PATCH', at, { name: 'mine' }, ['changeDatasource', 'DENIED', 'ROLE_REQUIRED']],
      [shop.owner, 'PUT', `${at}/exposure`, { tables: [], version: 99 }, ['putExposure', 'FAILED', 'CONFLICT']],
      [member, 'PATCH', path, { name: 'mine' }, ['changeTeam', 'DENIED', 'ROLE_REQUIRED']],
      [shop.owner, 'PATCH', path, { settings: { rowCap: 0 } }, ['changeTeam', 'FAILED', 'INVALID_REQUEST']],
      [shop.owner, 'PUT', `${at}/access`, { accountIds: ['nobody'] }, ['putAccess', 'FAILED', 'INVALID_REQUEST']],
    ] as const) {
      assert.deepEqual(await rowsAddedBy(() => who.ask(method, rest, body)), [row])
    }
  })

  test('the audit records no call of a stranger', async () => {
    const stranger = await shop.app.person('Eve')
    assert.deepEqual(await rowsAddedBy(() => stranger.ask('GET', `${at}/schema`)), [])
    assert.deepEqual(await rowsAddedBy(() => stranger.ask('POST', `${at}/query`, { sql: 'SELECT 1' })), [])
    assert.deepEqual(await rowsAddedBy(() => stranger.ask('PATCH', path, { name: 'x' })), [])
  })

  test('an ADMIN reads the audit of reachable datasources, a MEMBER reads nothing, and the pages contain each row once', async () => {
    const [admin, member] = [await shop.app.person('Ada'), await shop.app.person('Max')]
    await shop.app.join(shop.owner, shop.teamId, admin, 'ADMIN')
    await shop.app.join(shop.owner, shop.teamId, member)
    const about = async (who: Person) =>
      (await audit(who)).filter((row) => row.datasourceId === shop.datasourceId).length
    assert.ok((await about(admin)) > 0)
    await shop.owner.must('PATCH', at, { accessMode: 'EXPLICIT' })
    assert.equal(await about(admin), 0)
    assert.ok((await about(shop.owner)) > 0)
    assert.equal((await member.ask('GET', `${path}/audit`)).status, 403)
    await shop.owner.must('PATCH', at, { accessMode: 'ROLE_BASED' })

    const all = await audit()
    const seen: Row[] = []
    let cursor = ''
    do {
      const page = await shop.owner.must('GET', `${path}/audit?limit=7${cursor}`)
      seen.push(...page.items)
      cursor = page.nextCursor === null ? '' : `&cursor=${page.nextCursor}`
    } while (cursor !== '')
    assert.deepEqual(seen, all)
    for (const bad of ['?cursor=x', '?limit=0', '?limit=1000', '?from=1']) {
      assert.equal((await shop.owner.ask('GET', `${path}/audit${bad}`)).status, 400)
    }
  })
})
