// An agent's view of a datasource is what describe_datasource shows to a role or a key.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Person } from '../support/app.ts'
import { Agent } from '../support/agent.ts'
import { openShop, type Shop } from '../support/shop.ts'

describe('the view of an agent', () => {
  let shop: Shop
  let agent: Agent
  let at: { teamId: string; datasourceId: string }
  let member: Person
  before(async () => {
    shop = await openShop()
    agent = new Agent(shop.app, shop.key)
    at = { teamId: shop.teamId, datasourceId: shop.datasourceId }
    member = await shop.app.person('Mia')
    await shop.app.join(shop.owner, shop.teamId, member)
  })
  after(() => shop[Symbol.asyncDispose]())

  const path = (query: Record<string, string> = {}) => `${shop.at}/agent-view?${new URLSearchParams(query).toString()}`
  const view = (query: Record<string, string> = {}, who = shop.owner) => who.must('GET', path(query))
  const ask = async (query: Record<string, string>, who = member) =>
    (await shop.app.ask('GET', path(query), { token: who.jwt })).json
  const keyId = async (who: Person, fields: object = {}): Promise<string> =>
    (await who.must('POST', '/users/me/keys', { name: 'an agent', scopes: ['data:schema'], ...fields })).id

  test('at each level, an agent’s view equals the answer of describe_datasource, and counts its tokens', async () => {
    for (const detail of [undefined, 'names', 'columns', 'full']) {
      const args = detail === undefined ? {} : { detail }
      const { barred, page } = await view(args)
      const { tokens, ...rest } = page
      assert.equal(barred, null)
      assert.deepEqual(rest, await agent.tool('describe_datasource', { ...at, ...args }))
      assert.equal(tokens, Math.ceil(Buffer.byteLength(page.schema) / (detail === 'names' ? 3 : 4)))
    }
  })

  test('an agent’s view is shown for a role and for a key of the person, or the answer says why it cannot be shown', async () => {
    const { page } = await view()
    for (const as of ['OWNER', 'ADMIN', 'MEMBER', await keyId(shop.owner)]) {
      assert.deepEqual(await view({ as }), { barred: null, page }, as)
    }
    const other = await shop.app.team(shop.owner, 'Other')
    const ended = await keyId(shop.owner)
    await shop.owner.must('DELETE', `/users/me/keys/${ended}`)
    for (const [as, why] of [
      [await keyId(shop.owner, { scopes: ['data:read'] }), 'This key lacks the scope data:schema.'],
      [await keyId(shop.owner, { teamIds: [other] }), 'This key cannot reach this datasource.'],
      [ended, 'This key was revoked.'],
    ] as const) {
      assert.deepEqual(await view({ as }), { barred: why, page: null })
    }
    await shop.owner.must('PATCH', shop.at, { minRole: 'ADMIN' })
    assert.deepEqual(await view({ as: 'MEMBER' }), {
      barred: 'The role MEMBER cannot reach this datasource.',
      page: null,
    })
    await shop.owner.must('PATCH', shop.at, { minRole: 'MEMBER' })
  })

  test('an agent’s view never contains more than the caller may see', async () => {
    assert.deepEqual((await view({}, member)).page, (await view()).page)
    assert.equal((await ask({ as: 'OWNER' })).code, 'ROLE_REQUIRED')
    const ofOtherPerson = await ask({ as: await keyId(shop.owner) })
    assert.equal(ofOtherPerson.code, 'NOT_FOUND')
    assert.deepEqual(await ask({ as: 'no-such-key' }), ofOtherPerson)
  })

  test('wrong parameters of an agent’s view are refused by name', async () => {
    for (const [query, name] of [
      [{ detail: 'all' }, /^detail/],
      [{ as: '' }, /^as/],
      [{ nope: '1' }, /nope/],
      [{ cursor: 'mine' }, /^cursor: not a cursor of this service/],
    ] as const) {
      const { code, details } = await ask(query)
      assert.equal(code, 'INVALID_REQUEST')
      assert.match(details[0], name)
    }
  })

  test('an agent’s view of many tables is split into pages of limited size', async () => {
    await shop.postgres.query(
      shop.database,
      `CREATE SCHEMA wide; DO $$ BEGIN FOR n IN 1..300 LOOP
        EXECUTE format('CREATE TABLE wide.t%s (id int, a_rather_long_name text, another_rather_long_name text, more jsonb)', n);
      END LOOP; END $$`,
    )
    await shop.owner.must('POST', `${shop.at}/introspect`)
    const tables = Array.from({ length: 300 }, (_, n) => ({ schema: 'wide', table: `t${n + 1}`, columns: null }))
    await shop.owner.must('PUT', `${shop.at}/exposure`, { tables })
    const seen = new Set<string>()
    let cursor: string | null = null
    do {
      const { page }: { page: { schema: string; shown: number; tokens: number; nextCursor: string | null } } =
        await view({ detail: 'full', ...(cursor !== null && { cursor }) })
      assert.ok(page.tokens <= 12_000 && page.shown > 0)
      for (const [name] of page.schema.matchAll(/^t\d+/gm)) seen.add(name)
      cursor = page.nextCursor
    } while (cursor !== null && seen.size < 300)
    assert.deepEqual([seen.size, cursor], [300, null])
  })
})
