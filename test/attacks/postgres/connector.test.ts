// The corpus through both doors: every attack and every legitimate query has the same outcome and code over REST and over the
// connector, in both eras.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Agent, ERAS } from '../../support/agent.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { startPostgres, type TestPostgres } from '../../support/postgres.ts'
import { ATTACKS, EXPOSURE, FIXTURE, LEGIT, textOf } from './judge.ts'

/** The default of the connector. */
const LIMIT = 100

interface Body {
  readonly code?: string
  readonly truncated?: boolean
  readonly rowCount?: number
  readonly [field: string]: unknown
}

describe('the corpus through both doors', () => {
  let server: TestPostgres
  let app: TestApp
  let agent: Agent
  let key: string
  let place: { teamId: string; datasourceId: string }

  before(async () => {
    server = await startPostgres({ settings: { autovacuum: 'off' } })
    await server.createDatabase('shop', FIXTURE)
    app = await startApp()
    const owner = await app.person('Olga')
    const limits = { statementTimeoutMs: 3_000, postgresMaxPlanCost: 1e12, rowCap: 50_000 }
    const teamId = await app.team(owner, 'Corpus', limits)
    const { host, port, password } = server
    const spec = { name: 'shop', host, port, database: 'shop', username: 'postgres', password }
    place = { teamId, datasourceId: await app.datasource(owner, teamId, spec, EXPOSURE.tables) }
    key = await app.key(owner)
    agent = new Agent(app, key)
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  async function compare(sql: string, isOrdered: boolean): Promise<void> {
    const path = `/teams/${place.teamId}/datasources/${place.datasourceId}/query`
    const rest: Body = (await app.ask('POST', path, { token: key, body: { sql, limit: LIMIT } })).json
    for (const era of ERAS) {
      const { json } = await agent.call(era, 'run_query', { ...place, sql })
      if (json.result === undefined) {
        // A text that no JSON may hold is refused before the tool, with the same code.
        assert.equal(json.error.data.code, rest.code)
        continue
      }
      const tool: Body = json.result.structuredContent
      // A query at the deadline may end before or in the database.
      if (isLate(rest) || isLate(tool)) continue
      assert.equal(tool.code, rest.code)
      if (rest.code !== undefined) {
        assert.deepEqual(tool, rest)
        continue
      }
      assert.deepEqual(tool['columns'], rest['columns'])
      const isCut = String(tool['note']).includes('bytes')
      if (!isCut) assert.deepEqual([tool.rowCount, tool.truncated], [rest.rowCount, rest.truncated])
      if (isOrdered && !isCut) assert.deepEqual(tool['rows'], rest['rows'])
    }
  }

  test('every attack', async (t) => {
    for (const attack of ATTACKS) {
      const sql = textOf(attack, { database: 'shop', port: server.port })
      if (sql !== undefined) await t.test(attack.id, () => compare(sql, false))
    }
  })

  test('every legitimate query', async (t) => {
    for (const { id, sql, ordered } of LEGIT) await t.test(id, () => compare(sql, ordered === true))
  })
})

function isLate({ code }: Body): boolean {
  return code === 'QUERY_TIMEOUT' || code === 'OVERLOADED'
}
