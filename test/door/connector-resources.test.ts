// Tests MCP resources and prompts, and descriptions of databases with many tables.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { encode } from 'gpt-tokenizer/encoding/o200k_base'
import { Agent, ERAS } from '../support/agent.ts'
import { CANARY, openDocumentedShop, type DocumentedShop } from '../support/documented.ts'

describe('documentation through the connector', () => {
  let shop: DocumentedShop
  let agent: Agent
  let at: { teamId: string; datasourceId: string }
  before(async () => {
    shop = await openDocumentedShop()
    agent = new Agent(shop.app, shop.key)
    const [, , teamId = '', , datasourceId = ''] = shop.at.split('/')
    at = { teamId, datasourceId }
    const said = (text: string) => ({ text, origin: 'HUMAN', status: 'CONFIRMED' })
    const answer = await shop.put('orders', {
      summary: said('One row per order.'),
      statements: [said('A paid order is never changed.')],
      columns: { status: said('Whether the invoice was settled.') },
    })
    assert.equal(answer.status, 200, answer.text)
    await shop.put('odd/name.of table Ü', { summary: said('Odd but documented.') })
    await shop.publish()
  })
  after(() => shop[Symbol.asyncDispose]())

  const listed = async (era: (typeof ERAS)[number] = 'modern') =>
    (await agent.ask(era, 'resources/list')).json.result.resources as { uri: string; name: string }[]

  test('the MCP resources are the documented tables, with their documentation', async () => {
    for (const era of ERAS) {
      const resources = await listed(era)
      assert.deepEqual(
        resources.map(({ name }) => name),
        ['public.odd/name.of table Ü', 'public.orders'],
      )
      for (const { uri } of resources) {
        const { json } = await agent.ask(era, 'resources/read', { uri }, { headers: { 'mcp-name': uri } })
        assert.match(json.result.contents[0].text, /One row per order\.|Odd but documented\./)
        assert.doesNotMatch(json.result.contents[0].text, new RegExp(CANARY, 'i'))
      }
    }
    const { result } = (await agent.ask('modern', 'resources/list')).json
    assert.deepEqual([result.ttlMs > 0, result.cacheScope], [true, 'private'])
  })

  test('a resource of a hidden table, of an unknown team or datasource, or with an invalid address gets the same refusal', async () => {
    const { uri = '' } = (await listed()).find(({ name }) => name === 'public.orders') ?? {}
    const refusals = []
    for (const wrong of [
      uri.replace('/orders', '/canary_payroll'),
      uri.replace('/orders', '/no_such'),
      uri.replace(at.datasourceId, 'none'),
      uri.replace(at.teamId, 'none'),
      uri.replace('/orders', '/%E0%A4%A'),
      'vitrine://x',
      'file:///etc/passwd',
    ]) {
      for (const era of ERAS) {
        const { json } = await agent.ask(era, 'resources/read', { uri: wrong })
        assert.equal(json.error.code, -32602, wrong)
        refusals.push(JSON.stringify(json.error))
      }
    }
    assert.equal(new Set(refusals).size, 1)
  })

  test('an invalid cursor of the resource list is refused', async () => {
    for (const cursor of ['x', Buffer.from('{"id":"none","at":0}').toString('base64url')]) {
      assert.equal((await agent.ask('modern', 'resources/list', { cursor })).json.error.code, -32602)
    }
  })

  test('a key without data:schema can read no resource', async () => {
    const from = new Agent(shop.app, await shop.app.key(shop.owner, { scopes: ['data:read'] }))
    assert.equal((await from.ask('modern', 'resources/list')).json.error.data.code, 'SCOPE_REQUIRED')
  })

  test('the resource template shows how the address of a table is formed', async () => {
    const { result } = (await agent.ask('modern', 'resources/templates/list')).json
    assert.match(result.resourceTemplates[0].uriTemplate, /\{schema\}\/\{table\}$/)
  })

  test('a prompt explains how to turn a question into a query', async () => {
    for (const era of ERAS) {
      const [prompt] = (await agent.ask(era, 'prompts/list')).json.result.prompts
      const args = { question: 'How many orders are open?', datasource: 'shop' }
      const { result } = (await agent.ask(era, 'prompts/get', { name: prompt.name, arguments: args })).json
      const { role, content } = result.messages[0]
      assert.equal(role, 'user')
      for (const word of ['How many orders are open?', '"shop"', 'describe_datasource', 'run_query', 'suggestion']) {
        assert.ok(content.text.includes(word), word)
      }
      for (const wrong of [
        { name: 'none' },
        { name: prompt.name },
        { name: prompt.name, arguments: { question: ' ' } },
      ]) {
        assert.equal((await agent.ask(era, 'prompts/get', wrong)).json.error.code, -32602)
      }
    }
  })

  test('the full description contains the documentation, and a search for its words finds the table', async () => {
    const { schema } = await agent.tool('describe_datasource', { ...at, tables: ['orders'] })
    assert.match(schema, /\n {2}One row per order\.\n/)
    assert.match(schema, /\n {2}status text!: Whether the invoice was settled\./)
    assert.match(schema, /\n {2}- A paid order is never changed\./)
    const found = await agent.tool('describe_datasource', { ...at, search: 'invoice settled' })
    assert.match(found.schema, /\n\[public\]\norders\(/)
    assert.equal((await agent.tool('describe_datasource', { ...at, search: 'canary salary' })).shown, 0)
  })

  test('unusual names are shown in the form that a query needs', async () => {
    const { schema } = await agent.tool('describe_datasource', at)
    assert.ok(schema.includes('"odd/name.of table Ü"("a b" integer pk, "c/d" text)'), schema)
  })
})

describe('descriptions of many tables', () => {
  let shop: DocumentedShop
  let agent: Agent
  /** `many` has 200 tables, and `most` has 2,000. */
  let many: { teamId: string; datasourceId: string }
  let most: { teamId: string; datasourceId: string }
  before(async () => {
    shop = await openDocumentedShop()
    agent = new Agent(shop.app, shop.key)
    const [, , teamId = ''] = shop.at.split('/')
    const words = [
      'customer',
      'order',
      'invoice',
      'payment',
      'shipment',
      'product',
      'campaign',
      'ticket',
      'session',
      'event',
    ]
    const columns =
      'name text, status varchar(20) NOT NULL, owner_id bigint NOT NULL, created_at timestamptz NOT NULL, updated_at timestamptz, ' +
      'amount numeric(12,2), is_active boolean NOT NULL, note text, quantity integer, external_ref varchar(80)'
    const tables = (count: number) =>
      Array.from({ length: count }, (_, n) => {
        const name = `${words[n % 10]}_${words[Math.floor(n / 10) % 10]}_${n}`
        return `CREATE TABLE ${name} (id bigint PRIMARY KEY, ${columns});`
      }).join('\n')
    const open = async (count: number) => {
      const database = await shop.postgres.createDatabase(`many${count}`, tables(count))
      const { host, port, superuser, password } = shop.postgres
      const login = { name: database, host, port, database, username: superuser, password }
      const datasourceId = await shop.app.datasource(shop.owner, teamId, login)
      const path = `/teams/${teamId}/datasources/${datasourceId}`
      const full = await shop.owner.must('GET', `${path}/schema?full=1`)
      const all = full.tables.map((it: { schema: string; table: string }) => ({ ...it, columns: null }))
      await shop.owner.must('PUT', `${path}/exposure`, {
        tables: all.map(({ schema, table, columns }: { schema: string; table: string; columns: null }) => ({
          schema,
          table,
          columns,
        })),
      })
      return { teamId, datasourceId }
    }
    many = await open(200)
    most = await open(2_000)
  })
  after(() => shop[Symbol.asyncDispose]())

  const tablesIn = (schema: string) => schema.split('\n').filter((line) => !/^[#[]/.test(line))

  test('the description of 200 tables takes at most 15,000 tokens, with every column', async () => {
    const { result } = (await agent.call('modern', 'describe_datasource', many)).json
    const { detail, shown, nextCursor, schema } = result.structuredContent
    assert.deepEqual([detail, shown, nextCursor, tablesIn(schema).length], ['columns', 200, null, 200])
    const tokens = encode(result.content[0].text).length
    assert.ok(tokens <= 15_000, String(tokens))
  })

  test('the description of 2,000 tables shows names, in pages that list each table once', async () => {
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await agent.tool('describe_datasource', { ...most, ...(cursor !== undefined && { cursor }) })
      assert.equal(page.detail, 'names')
      assert.equal(page.tableCount, 2_000)
      assert.ok(encode(JSON.stringify(page)).length <= 15_000)
      const names = tablesIn(page.schema).map((line) => line.split(/[ ,]/)[0] ?? '')
      assert.equal(names.length, page.shown)
      seen.push(...names)
      cursor = page.nextCursor ?? undefined
    } while (cursor !== undefined)
    assert.deepEqual([seen.length, new Set(seen).size], [2_000, 2_000])
  })

  test('if the caller gives a maximum number of tokens, the service chooses the level of detail', async () => {
    const rich = await agent.tool('describe_datasource', { ...many, budgetTokens: 100_000 })
    const poor = await agent.tool('describe_datasource', { ...many, budgetTokens: 1_000 })
    assert.deepEqual([rich.detail, poor.detail], ['columns', 'names'])
    assert.ok(encode(poor.schema).length <= 1_200, String(encode(poor.schema).length))
    assert.notEqual(poor.nextCursor, null)
  })

  test('a search finds the best 20 of 2,000 tables', async () => {
    const { shown, schema } = await agent.tool('describe_datasource', { ...most, search: 'ticket payment 437' })
    assert.equal(shown, 20)
    assert.match(tablesIn(schema)[0] ?? '', /^ticket_payment_437\(/)
  })

  test('a cursor of an older exposure, or of other arguments, is refused with a hint', async () => {
    const { nextCursor } = await agent.tool('describe_datasource', { ...many, budgetTokens: 1_000 })
    const other = await agent.tool('describe_datasource', { ...many, search: 'order', cursor: nextCursor })
    assert.match(other.details[0], /^cursor: belongs to other arguments/)
    const path = `/teams/${many.teamId}/datasources/${many.datasourceId}`
    const { tables } = await shop.owner.must('GET', `${path}/exposure`)
    await shop.owner.must('PUT', `${path}/exposure`, { tables: tables.slice(1) })
    const stale = await agent.tool('describe_datasource', { ...many, cursor: nextCursor })
    assert.equal(stale.code, 'INVALID_REQUEST')
    assert.match(stale.details[0], /^cursor: the description has changed since\. Call describe_datasource again/)
  })
})
