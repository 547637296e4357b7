// Tests webhooks in the settings of a team, in a real browser with a real receiver.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApp } from '../support/app.ts'
import { accessible, browserOrSkip, consoleDir, ready, signIn } from '../support/console.ts'
import { isSigned, startReceiver } from '../support/webhook-receiver.ts'

test('a webhook is created, tested with its secret, turned off and deleted', async (t) => {
  await using browser = await browserOrSkip(t)
  if (browser === null) return
  await using receiver = await startReceiver()
  await using app = await startApp({ consoleDir: await consoleDir() })
  const ada = await app.person()
  const teamId = await app.team(ada)
  const { slug } = await ada.must('GET', `/teams/${teamId}`)
  const page = await browser.open(app)
  await signIn(page, ada.email, `/app/t/${slug}/settings`)
  await ready(page, 'Team')
  const panel = page.getByRole('region', { name: 'Webhooks', exact: true })
  await panel.getByText('There are none.').waitFor()
  await panel.getByRole('button', { name: 'New webhook', exact: true }).click()
  await page.getByRole('textbox', { name: 'Name', exact: true }).last().fill('on call')
  await page.getByRole('textbox', { name: 'Address', exact: true }).fill(receiver.url)
  await accessible(page, 'the new webhook')
  await page.getByRole('button', { name: 'Create webhook', exact: true }).click()
  const secret = await page.getByRole('textbox', { name: 'Secret', exact: true }).inputValue()
  await page.getByRole('checkbox', { name: 'I have stored this secret', exact: true }).check()
  await page.getByRole('button', { name: 'Done', exact: true }).click()

  const act = async (name: string) => {
    await panel.getByRole('button', { name: 'Actions for on call', exact: true }).click()
    await page.getByRole('menuitem', { name, exact: true }).click()
  }
  await act('Send a test')
  await page.getByText('The test arrived').first().waitFor()
  const [message] = receiver.received
  assert.ok(message !== undefined && isSigned(message, secret))
  await accessible(page, 'the list of webhooks')
  await act('Deliveries')
  await page.getByText('Nothing was sent in the last seven days.').waitFor()
  await page.getByRole('button', { name: 'Close', exact: true }).click()
  await act('Turn off')
  await panel.getByRole('cell', { name: 'Off', exact: true }).waitFor()
  await act('Delete')
  await page.getByRole('button', { name: 'Delete webhook', exact: true }).click()
  await panel.getByText('There are none.').waitFor()
  assert.deepEqual(await ada.must('GET', `/teams/${teamId}/webhooks`), [])
  browser.clean()
})
