// Sends each attack and each legitimate query over REST and over the agent connector (MCP, in two protocol versions).
// The outcome must be the same.
import { test } from 'node:test'
import { startApp } from '../../support/app.ts'
import { sameThroughBothDoors } from '../../support/both-doors.ts'
import { startMongod } from '../../support/mongodb.ts'
import { engineOrSkip } from '../../support/no-such-engine.ts'
import { ATTACKS } from './attacks.ts'
import { BARE, EXPOSED, FULL, isDocument, load } from './fixture.ts'
import { LEGIT } from './legit.ts'

test('every attack on MongoDB and every legitimate query has the same outcome over REST and over the connector', async (t) => {
  const mongo = await engineOrSkip(t, () => startMongod({ auth: true }))
  if (mongo === null) return
  await using _ = mongo
  const [database, bare] = [mongo.database(FULL), mongo.database(BARE)]
  await load(mongo.client.db(database), mongo.client.db(bare))
  await mongo.createUser(database, 'reader', 'reader-pw', [{ role: 'read', db: database }])
  await using app = await startApp()
  const owner = await app.person('Olga')
  const teamId = await app.team(owner, 'Corpus', { statementTimeoutMs: 8_000, mongodbMaxScannedDocuments: 1e12 })
  const spec = { type: 'MONGODB', host: mongo.host, port: mongo.port, database, username: 'reader' }
  const login = { password: 'reader-pw', config: { authSource: database } }
  const tables = Object.entries(EXPOSED).map(([table, columns]) => ({ schema: database, table, columns }))
  const datasourceId = await app.datasource(owner, teamId, { ...spec, ...login }, tables)
  const doors = { app, token: await app.key(owner), place: { teamId, datasourceId } }
  for (const [n, { family, body }] of ATTACKS.entries()) {
    // An agent can send only objects, so the attacks that are other JSON values are skipped.
    if (!isDocument(body) || !isWritable(body)) continue
    await t.test(`attack ${n}: ${family}`, () => sameThroughBothDoors(doors, body))
  }
  for (const [n, body] of LEGIT.entries()) {
    await t.test(`question ${n}`, () => sameThroughBothDoors(doors, body))
  }
})

/** False if JSON.stringify cannot write the query. */
function isWritable(body: object): boolean {
  try {
    return JSON.stringify(body).length > 0
  } catch {
    return false
  }
}
