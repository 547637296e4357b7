// Tests audit and usage over HTTP, on both stores, for all roles.
import assert from 'node:assert/strict'
import { get } from 'node:http'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { AuditItem, AuditPage, Usage } from '../../src/contract/audit-schemas.ts'
import type { Person } from '../support/app.ts'
import { openShop, type Shop } from '../support/shop.ts'
import { DIALECTS, storeEnv, storeSource, type StoreSource } from '../support/stores.ts'

for (const dialect of DIALECTS) {
  describe(`the audit over HTTP on ${dialect}`, () => {
    let source: StoreSource
    let shop: Shop
    let path: string
    before(async () => {
      source = await storeSource(dialect)
      shop = await openShop({ env: storeEnv(await source.config()) })
      path = `/teams/${shop.teamId}`
    })
    after(async () => {
      await shop[Symbol.asyncDispose]()
      await source[Symbol.asyncDispose]()
    })

    const list = async (filter: string, who: Person = shop.owner) => {
      const { items } = await who.must('GET', `${path}/audit?limit=500&${filter}`)
      return AuditPage.shape.items.parse(items)
    }
    const exportAudit = async (query: string, who: Person = shop.owner) =>
      who.ask('GET', `${path}/audit/export?${query}`)
    const usage = async (who: Person = shop.owner, query = '') => {
      const json = await who.must('GET', `${path}/usage${query}`)
      assert.deepEqual(Usage.parse(json), json)
      return Usage.parse(json)
    }

    test('each audit filter returns exactly the matching rows, and filters combine', async () => {
      await shop.query('SELECT id FROM customers LIMIT 1')
      await shop.query('SELECT email FROM customers')
      await shop.app.ask('POST', `${shop.at}/query`, {
        token: shop.owner.jwt,
        body: { sql: 'SELECT 1' },
        headers: { 'user-agent': 'filter-test/1.0 (ä)' },
      })
      const all = await list('')
      const [first] = all
      assert.match(first?.actor.client ?? '', /^filter-test\/1\.0/)
      const keyId = all.find((row) => row.via === 'API_KEY')?.actor.keyId ?? ''
      for (const [filter, matches] of [
        [`datasourceId=${shop.datasourceId}`, (row) => row.datasourceId === shop.datasourceId],
        [`accountId=${shop.owner.id}`, (row) => row.actor.accountId === shop.owner.id],
        [`keyId=${keyId}`, (row) => row.actor.keyId === keyId],
        ['action=runQuery', (row) => row.action === 'runQuery'],
        ['outcome=DENIED', (row) => row.outcome === 'DENIED'],
        ['code=QUERY_DENIED', (row) => row.code === 'QUERY_DENIED'],
        [`from=${all[2]?.at}`, (row) => row.at >= (all[2]?.at ?? '')],
        [`to=${all[2]?.at}`, (row) => row.at < (all[2]?.at ?? '')],
        [`keyId=${keyId}&outcome=ANSWERED`, (row) => row.actor.keyId === keyId && row.outcome === 'ANSWERED'],
      ] as const satisfies readonly (readonly [string, (row: AuditRow) => boolean])[]) {
        const found = await list(filter)
        assert.deepEqual(found, all.filter(matches), filter)
        assert.ok(found.length > 0, filter)
      }
      for (const filter of [
        'accountId=nobody',
        'action=nothing',
        'from=2100-01-01T00:00:00Z',
        'from=9999-12-31T23:59:59-14:00',
        'to=2000-01-01T00:00:00%2B02:00',
      ]) {
        assert.deepEqual(await list(filter), [], filter)
      }
    })

    test('small pages of the filtered audit add up to one large page', async () => {
      for (let n = 0; n < 7; n++) await shop.query(n % 2 === 0 ? 'SELECT 1' : 'SELECT nothing')
      const whole = await list('outcome=DENIED')
      const seen: unknown[] = []
      let cursor = ''
      do {
        const page = await shop.owner.must('GET', `${path}/audit?limit=2&outcome=DENIED${cursor}`)
        seen.push(...page.items)
        cursor = page.nextCursor === null ? '' : `&cursor=${page.nextCursor}`
      } while (cursor !== '')
      assert.deepEqual(seen, whole)
    })

    test('an invalid audit filter is refused', async () => {
      for (const bad of [
        'from=yesterday',
        'from=2026-01-01',
        'from=2026-01-01T00:00:00',
        'from=2026-02-30T00:00:00Z',
        'from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z',
        'outcome=answered',
        'accountId=a&accountId=b',
        'code=NONE',
        'action=a%20b',
        "accountId='",
        'datasourceId=',
        'nope=1',
      ]) {
        for (const at of ['audit', 'audit/export']) {
          const answer = await shop.owner.ask('GET', `${path}/${at}?${bad}`)
          assert.deepEqual([bad, answer.status, answer.json.code], [bad, 400, 'INVALID_REQUEST'])
          assert.ok(answer.json.details.length > 0)
        }
      }
      for (const [at, bad] of [
        ['audit/export', 'format=xml'],
        ['audit/export', 'cursor=x'],
        ['audit/export', 'limit=1'],
        ['usage', 'days=0'],
        ['usage', 'days=367'],
        ['usage', 'days=1.5'],
        ['usage', 'days=x'],
      ]) {
        assert.equal((await shop.owner.ask('GET', `${path}/${at}?${bad}`)).status, 400, bad)
      }
    })

    test('an audit export in JSON Lines equals the list, and is itself audited', async () => {
      const rows = await list('')
      const answer = await exportAudit('format=jsonl')
      assert.equal(answer.headers.get('content-type'), 'application/jsonl; charset=utf-8')
      assert.match(
        answer.headers.get('content-disposition') ?? '',
        /^attachment; filename="audit-[\w-]+-\d{4}-\d\d-\d\d\.jsonl"$/,
      )
      assert.equal(answer.headers.get('cache-control'), 'no-store')
      const lines = answer.text.split('\n')
      assert.equal(lines.pop(), '')
      assert.deepEqual(
        lines.map((line) => AuditItem.parse(JSON.parse(line))),
        rows,
      )
      const [exported] = await list('action=exportAudit')
      assert.deepEqual(
        [exported?.outcome, exported?.rowCount, exported?.actor.accountId],
        ['ANSWERED', rows.length, shop.owner.id],
      )
      assert.equal((await exportAudit('format=jsonl&action=nothing')).text, '')
    })

    test('an audit export in CSV has the same query texts, and no cell is a formula', async () => {
      const texts = [
        '=HYPERLINK("http://evil.test";"x")',
        '+1',
        '-- a comment, "quoted",\r\nand a line',
        '@SUM(A1)',
        '\t=1',
        ' =1+1',
        '＝1',
        'SELECT 1 AS "a,b"',
        "'",
      ]
      for (const sql of texts) await shop.query(sql)
      const answer = await exportAudit('action=runQuery')
      assert.equal(answer.headers.get('content-type'), 'text/csv; charset=utf-8; header=present')
      const [head, ...rows] = parseCsv(answer.text)
      const column = head?.indexOf('query') ?? -1
      const shown = rows.slice(0, texts.length).map((row) => row[column])
      assert.deepEqual(
        shown.toReversed(),
        texts.map((text) => (/^\s*[=+\-@＝]/.test(text) ? `'${text}` : text)),
      )
      assert.ok(answer.text.endsWith('\r\n'))
      assert.equal(rows.length, (await list('action=runQuery')).length)
      assert.ok(rows.every((row) => row.length === head?.length))
      assert.equal(parseCsv((await exportAudit('action=nothing')).text).length, 1)
    })

    test('if a client disconnects, its audit export ends', async () => {
      const sql = `SELECT 1 /* ${'x'.repeat(60_000)} */`
      const queries = 300
      await Promise.all(Array.from({ length: queries }, () => shop.query(sql)))
      // These rows come first in the export.
      await list('action=runQuery')
      const request = get(`${shop.app.url}${path}/audit/export?format=jsonl`, {
        headers: { authorization: `Bearer ${shop.owner.jwt}` },
      })
      const [response] = await once(request, 'response')
      await once(response, 'data')
      response.destroy()
      let exported: AuditRow | undefined
      // The service writes the row of the export when it notices the disconnect.
      while (exported === undefined) [exported] = await list('action=exportAudit&outcome=FAILED')
      assert.ok((exported.rowCount ?? queries) < queries, `${exported.rowCount} of ${queries}`)
    })

    test('a team or account may run two exports at the same time, and a third export is rate limited', async () => {
      const responses = await Promise.all(
        [1, 2].map(async () => {
          const request = get(`${shop.app.url}${path}/audit/export?format=jsonl`, {
            headers: { authorization: `Bearer ${shop.owner.jwt}` },
          })
          const [response] = await once(request, 'response')
          await once(response, 'readable')
          return response
        }),
      )
      const third = await exportAudit('format=csv')
      assert.deepEqual([third.status, third.json.code, third.json.retryAfter], [429, 'RATE_LIMITED', 10])
      assert.equal(third.headers.get('retry-after'), '10')
      // An account has one limit for all its teams together. The limit does not affect other accounts.
      const other = await shop.app.team(shop.owner, 'Other')
      assert.equal((await shop.owner.ask('GET', `/teams/${other}/audit/export`)).status, 429)
      const max = await shop.app.person('Max')
      const maxTeam = await shop.app.team(max)
      assert.equal((await max.ask('GET', `/teams/${maxTeam}/audit/export`)).status, 200)
      for (const response of responses) response.destroy()
      // Two exports of the team are running until the service notices that their clients have disconnected.
      while ((await exportAudit('format=csv&action=nothing')).status === 429);
      const rows = await list('action=exportAudit&code=RATE_LIMITED')
      assert.ok(rows.length > 0 && rows.every((row) => row.outcome === 'DENIED'))
    })

    test('an ADMIN exports and counts only reachable datasources, and a MEMBER exports nothing and sees only their own keys', async () => {
      const [admin, member] = [await shop.app.person('Ada'), await shop.app.person('Max')]
      await shop.app.join(shop.owner, shop.teamId, admin, 'ADMIN')
      await shop.app.join(shop.owner, shop.teamId, member)
      const memberKey = await shop.app.key(member)
      await shop.query('SELECT 1', memberKey)
      await shop.query('SELECT nothing', memberKey)
      assert.ok((await exportAudit('format=jsonl', admin)).text.includes(shop.datasourceId))
      assert.equal((await exportAudit('', member)).json.code, 'ROLE_REQUIRED')
      const [all, own] = [await usage(admin), await usage(member)]
      assert.deepEqual(all.days, own.days)
      assert.deepEqual(all.datasources, own.datasources)
      assert.ok(all.keys.length > own.keys.length)
      assert.deepEqual(
        own.keys.map(({ keyId, ...rest }) => [typeof keyId, rest]),
        [['string', { accountId: member.id, queries: 2, denied: 1, failed: 0, rows: 1 }]],
      )
      await shop.owner.must('PATCH', shop.at, { accessMode: 'EXPLICIT' })
      assert.ok(!(await exportAudit('format=jsonl', admin)).text.includes(`"datasourceId":"${shop.datasourceId}"`))
      assert.deepEqual(await list(`datasourceId=${shop.datasourceId}`, admin), [])
      const none = await usage(admin)
      assert.deepEqual([none.keys, none.datasources], [[], []])
      assert.ok(none.days.every((day) => day.queries === 0))
      await shop.owner.must('PATCH', shop.at, { accessMode: 'ROLE_BASED' })
    })

    test('usage counts queries by day, key and datasource, and does not use the budget', async () => {
      const before = await usage()
      const spent = await shop.query('SELECT id FROM customers LIMIT 3')
      await shop.query('SELECT email FROM customers')
      await shop.query('SELECT 1/0')
      const now = await usage(shop.owner, '?days=2')
      assert.equal(before.days.length, 30)
      // The day may change during the test, so compare with the day of the answer.
      const last = Date.parse(now.days.at(-1)?.date ?? '')
      assert.deepEqual(
        [now.days.length, now.days[0]?.date],
        [2, new Date(last - 86_400_000).toISOString().slice(0, 10)],
      )
      assert.ok(Date.now() - last < 2 * 86_400_000)
      const [was, is] = [totalsOf(before.days), totalsOf(now.days)]
      const grown = (name: 'queries' | 'denied' | 'failed' | 'rows') => is[name] - was[name]
      assert.deepEqual([grown('queries'), grown('denied'), grown('failed'), grown('rows')], [3, 1, 1, 3])
      for (const part of [now.keys, now.datasources]) {
        assert.equal(
          part.reduce((sum, item) => sum + item.queries, 0),
          is.queries,
        )
      }
      const limit = Number(spent.headers.get('ratelimit-limit'))
      const remaining = Number(spent.headers.get('ratelimit-remaining')) - 2
      for (let n = 0; n < 3; n++) {
        const { budget } = await usage()
        assert.deepEqual([budget.limit, budget.remaining], [limit, remaining])
        assert.ok(Date.parse(budget.resetsAt ?? '') > Date.now())
      }
      const fresh = await shop.app.team(shop.owner, 'Fresh')
      const { budget } = await shop.owner.must('GET', `/teams/${fresh}/usage`)
      assert.deepEqual(budget, { limit: 1_000_000, remaining: 1_000_000, resetsAt: null })
    })

    test('usage counts the queries that the budget refused', async () => {
      await shop.owner.must('PATCH', path, { settings: { queryBudget: { limit: 1, windowSeconds: 3600 } } })
      const before = totalsOf((await usage()).days)
      for (let n = 0; n < 4; n++) await shop.query('SELECT 1')
      const { days, budget } = await usage()
      const after = totalsOf(days)
      assert.deepEqual([after.queries - before.queries, after.denied - before.denied], [4, 3])
      assert.deepEqual([budget.limit, budget.remaining], [1, 0])
      // One row counts the refusals of one minute. The minute may change during the test, so add up the rows.
      const rows = await list('code=RATE_LIMITED&action=runQuery')
      assert.equal(
        rows.reduce((sum, { times = 1 }) => sum + times, 0),
        3,
      )
      await shop.owner.must('PATCH', path, { settings: { queryBudget: { limit: 1_000_000, windowSeconds: 86_400 } } })
    })
  })
}

type AuditRow = (typeof AuditPage)['_output']['items'][number]

/** Adds up all days, because the day may change during the test. */
function totalsOf(days: readonly Record<'queries' | 'denied' | 'failed' | 'rows', number>[]) {
  const sum = (name: 'queries' | 'denied' | 'failed' | 'rows') => days.reduce((all, day) => all + day[name], 0)
  return { queries: sum('queries'), denied: sum('denied'), failed: sum('failed'), rows: sum('rows') }
}

/** Parses CSV strictly by RFC 4180. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  const cells = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/gy
  for (let at = 0; at < text.length; at = cells.lastIndex) {
    cells.lastIndex = at
    const found = cells.exec(text)
    assert.ok(found !== null, `not CSV at ${at}: ${text.slice(at, at + 40)}`)
    row.push(found[1]?.replaceAll('""', '"') ?? found[2] ?? '')
    if (found[3] !== ',') {
      rows.push(row)
      row = []
    }
  }
  return rows
}
