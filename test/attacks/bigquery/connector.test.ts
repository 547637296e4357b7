// Sends each attack and each legitimate query over REST and over the agent connector (MCP, in two protocol versions).
// The outcome must be the same.
import { test } from 'node:test'
import { sameThroughBothDoors } from '../../support/both-doors.ts'
import { engineOrSkip } from '../../support/no-such-engine.ts'
import { ATTACKS, LEGIT } from './sample-project.ts'
import { openStage } from './stage.ts'

test('every attack on BigQuery and every legitimate query has the same outcome over REST and over the connector', async (t) => {
  const stage = await engineOrSkip(t, openStage)
  if (stage === null) return
  await using doors = stage
  for (const { id, sql } of [...ATTACKS, ...LEGIT]) {
    await t.test(id, () => sameThroughBothDoors(doors, { sql }))
  }
})
