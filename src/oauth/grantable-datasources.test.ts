import assert from 'node:assert/strict'
import { test } from 'node:test'
import { callOf, openRooms, someone } from '../../test/support/people.ts'
import { datasourceRow } from '../../test/support/rows.ts'
import { storeSource } from '../../test/support/stores.ts'
import { asId, type TeamId } from '../ids.ts'
import { createTeam } from '../teams/teams.ts'
import { consentPage } from './authorization-pages.ts'
import { choicesOf } from './grantable-datasources.ts'

test('the page to allow lists at most 1,000 datasources, and offers other teams only as a whole', async () => {
  await using source = await storeSource('sqlite')
  await using rooms = await openRooms(source)
  const { accountId } = (await someone(rooms, 'ada@example.test')).caller
  const call = callOf(rooms, accountId)
  for (const count of [500, 400, 100, 1, 0]) {
    rooms.clock.at++
    const teamId = asId<TeamId>((await createTeam(rooms, call, { name: `Team ${count}` })).id)
    const rows = Array.from({ length: count }, () => datasourceRow(teamId))
    if (count > 0) await rooms.store.write((tx) => tx.insertInto('datasources').values(rows).execute())
  }
  const teams = await choicesOf(rooms, call)
  assert.deepEqual(
    teams.map(({ name, datasources }) => [name, datasources?.length]),
    [
      ['Team 500', 500],
      ['Team 400', 400],
      ['Team 100', 100],
      ['Team 1', undefined],
      ['Team 0', undefined],
    ],
  )
  const page = consentPage({
    ...{ clientName: 'Agent', host: 'agent.example.test', hasDocument: true },
    ...{ redirectUri: 'https://agent.example.test/back', isOwnComputer: false, scopes: ['data:read'] },
    account: { id: accountId, name: 'Ada', email: 'ada@example.test' },
    teams,
  })
  const html = await page.text()
  assert.equal(html.match(/<input type="checkbox" name="datasource"/g)?.length, 1_000)
  assert.equal(html.match(/<input type="checkbox" name="team" value="[^"]+" checked>/g)?.length, 3)
  assert.equal(html.match(/<input type="checkbox" name="team" value="[^"]+" data-whole disabled>/g)?.length, 2)
})
