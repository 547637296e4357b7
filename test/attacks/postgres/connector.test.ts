// Sends each attack and each legitimate query over REST and over the agent connector (MCP, in two protocol versions).
// The outcome and the code must be the same.
import { after, before, describe, test } from 'node:test'
import { startApp, type TestApp } from '../../support/app.ts'
import { sameThroughBothDoors, type BothDoors } from '../../support/both-doors.ts'
import { startPostgres, type TestPostgres } from '../../support/postgres.ts'
import { ATTACKS, EXPOSURE, FIXTURE, LEGIT, textOf } from './judge.ts'

describe('the corpus has the same outcome over REST and over the connector', () => {
  let server: TestPostgres
  let app: TestApp
  let doors: BothDoors

  before(async () => {
    server = await startPostgres({ settings: { autovacuum: 'off' } })
    await server.createDatabase('shop', FIXTURE)
    app = await startApp()
    const owner = await app.person('Olga')
    const limits = { statementTimeoutMs: 3_000, postgresMaxPlanCost: 1e12, rowCap: 50_000 }
    const teamId = await app.team(owner, 'Corpus', limits)
    const { host, port, password } = server
    const spec = { name: 'shop', host, port, database: 'shop', username: 'postgres', password }
    const place = { teamId, datasourceId: await app.datasource(owner, teamId, spec, EXPOSURE.tables) }
    doors = { app, token: await app.key(owner), place }
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  /** gen_random_uuid() returns another value each time, so only the columns are compared. */
  const rowsOf = (sql: string) => (sql === 'SELECT gen_random_uuid()' ? 'random' : 'unordered')

  test('every attack has the same outcome over REST and over the connector', async (t) => {
    for (const attack of ATTACKS) {
      const sql = textOf(attack, { database: 'shop', port: server.port })
      if (sql !== undefined) await t.test(attack.id, () => sameThroughBothDoors(doors, { sql }, rowsOf(sql)))
    }
  })

  test('every legitimate query has the same outcome over REST and over the connector', async (t) => {
    for (const { id, sql, ordered } of LEGIT)
      await t.test(id, () => sameThroughBothDoors(doors, { sql }, ordered === true ? 'ordered' : 'unordered'))
  })
})
