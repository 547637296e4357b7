// Sends the corpus over REST and over the connector, in both generations of its protocol. Every attack and every
// legitimate query must have the same outcome.
import { test } from 'node:test'
import { sameThroughBothDoors } from '../../support/both-doors.ts'
import { engineOrSkip } from '../../support/no-such-engine.ts'
import { ATTACKS, LEGIT } from './sample-project.ts'
import { openStage } from './stage.ts'

test('every query of the corpus has the same outcome over REST and over the connector', async (t) => {
  const stage = await engineOrSkip(t, openStage)
  if (stage === null) return
  await using doors = stage
  for (const { id, sql } of [...ATTACKS, ...LEGIT]) {
    await t.test(id, () => sameThroughBothDoors(doors, { sql }))
  }
})
