// Sends the corpus over REST and over the connector, in both generations of its protocol. Every attack and every plain
// question that is a JSON object must have the same outcome.
import { test } from 'node:test'
import { startApp } from '../../support/app.ts'
import { sameThroughBothDoors } from '../../support/both-doors.ts'
import { startMongod } from '../../support/mongodb.ts'
import { engineOrSkip } from '../../support/no-such-engine.ts'
import { ATTACKS } from './attacks.ts'
import { BARE, EXPOSED, FULL, isDocument, load } from './fixture.ts'
import { LEGIT } from './legit.ts'

test('every object of the corpus has the same outcome over REST and over the connector', async (t) => {
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
    // The arguments of a tool are always an object, so other bodies are skipped.
    if (!isDocument(body) || !isWritable(body)) continue
    await t.test(`attack ${n}: ${family}`, () => sameThroughBothDoors(doors, body))
  }
  for (const [n, body] of LEGIT.entries()) {
    await t.test(`question ${n}`, () => sameThroughBothDoors(doors, body))
  }
})

/** True if JSON.stringify can write the body. test/door/connector.test.ts sends other bodies as text. */
function isWritable(body: object): boolean {
  try {
    return JSON.stringify(body).length > 0
  } catch {
    return false
  }
}
