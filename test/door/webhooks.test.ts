// Tests webhooks over REST. The secret is shown once, and the address never. A test message is signed, and is sent only
// to an allowed address.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startApp, type Person, type TestApp } from '../support/app.ts'
import { isSigned, startReceiver, type Receiver } from '../support/webhook-receiver.ts'

describe('webhooks', () => {
  let app: TestApp
  let ada: Person
  let teamId: string
  let receiver: Receiver
  let path: string
  before(async () => {
    app = await startApp()
    ada = await app.person()
    teamId = await app.team(ada, 'Shop & Co')
    path = `/teams/${teamId}/webhooks`
    receiver = await startReceiver()
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
    await receiver[Symbol.asyncDispose]()
  })

  const order = (more: object = {}) => ({ name: 'pager', url: receiver.url, events: ['refusals', 'drift'], ...more })
  const make = async (more: object = {}) => await ada.must('POST', path, order(more))
  const sent = async (id: string) => {
    const answer = await ada.must('POST', `${path}/${id}/test`)
    return { answer, message: receiver.received.at(-1) ?? assert.fail('nothing arrived') }
  }

  test('the secret of a webhook is shown once, and its address is never shown', async () => {
    const { secret, ...made } = await make()
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.equal(made.host, `127.0.0.1:${receiver.port}`)
    assert.deepEqual(made.refusals, { count: 20, minutes: 60 })
    const listed = await ada.ask('GET', path)
    assert.deepEqual(
      listed.json.find((webhook: { id: string }) => webhook.id === made.id),
      made,
    )
    const audit = await ada.ask('GET', `/teams/${teamId}/audit`)
    for (const { text } of [listed, audit]) assert.doesNotMatch(text, /whsec_|secret-in-path/)
    await ada.must('DELETE', `${path}/${made.id}`)
  })

  test('a test message to a webhook arrives signed, with a time', async () => {
    const { id, secret } = await make()
    const { answer, message } = await sent(id)
    assert.deepEqual([answer.delivered, answer.status, answer.error], [true, 204, null])
    assert.ok(isSigned(message, secret))
    assert.ok(!isSigned(message, `whsec_${Buffer.alloc(32).toString('base64')}`))
    const age = Date.now() / 1000 - Number(message.headers['webhook-timestamp'])
    assert.ok(age >= 0 && age < 600)
    const { at, ...body } = JSON.parse(message.body)
    assert.equal(new Date(at).toISOString(), at)
    assert.deepEqual(body, {
      id: message.headers['webhook-id'],
      type: 'test',
      team: { id: teamId, name: 'Shop & Co' },
      text: 'This is a test of the webhook “pager”.',
      data: {},
    })
    await ada.must('DELETE', `${path}/${id}`)
  })

  test('a new secret of a webhook replaces the old secret immediately', async () => {
    const { id, secret } = await make()
    const changed = await ada.must('PATCH', `${path}/${id}`, { newSecret: true })
    assert.notEqual(changed.secret, secret)
    const { message } = await sent(id)
    assert.ok(isSigned(message, changed.secret) && !isSigned(message, secret))
    assert.equal((await ada.must('PATCH', `${path}/${id}`, { name: 'x' })).secret, undefined)
    await ada.must('DELETE', `${path}/${id}`)
  })

  test("a message in Slack's form has one text with escaped markup", async () => {
    const { id } = await make({ format: 'SLACK', name: '<!channel> *x*' })
    const { message } = await sent(id)
    const text = '*Shop &amp; Co*: This is a test of the webhook “&lt;!channel&gt;  x ”.'
    assert.deepEqual(JSON.parse(message.body), { text })
    await ada.must('DELETE', `${path}/${id}`)
  })

  test("an error or a redirect of a webhook's receiver is reported, and the redirect is not followed", async () => {
    const { id } = await make()
    receiver.status = 500
    assert.equal((await sent(id)).answer.error, 'The receiver answered with the status 500.')
    receiver.status = 302
    receiver.headers = { location: receiver.url }
    const before = receiver.received.length
    const { answer } = await sent(id)
    assert.deepEqual([answer.delivered, answer.status, receiver.received.length], [false, 302, before + 1])
    receiver.status = 204
    receiver.headers = {}
    await ada.must('PATCH', `${path}/${id}`, { url: 'http://127.0.0.1:1/' })
    const gone = await ada.must('POST', `${path}/${id}/test`)
    assert.deepEqual([gone.delivered, gone.status, gone.error], [false, null, 'The receiver cannot be reached.'])
    await ada.must('DELETE', `${path}/${id}`)
  })

  test('a webhook with an invalid field is refused', async () => {
    for (const more of [
      { url: 'ftp://127.0.0.1/' },
      { url: 'http://user:pw@127.0.0.1/' },
      { url: 'not an address' },
      { events: [] },
      { events: ['drift', 'drift'] },
      { events: ['everything'] },
      { refusals: { count: 0, minutes: 5 } },
      { name: ' ' },
      { secret: 'chosen' },
    ]) {
      assert.equal((await ada.ask('POST', path, order(more))).json.code, 'INVALID_REQUEST', JSON.stringify(more))
    }
  })

  test('a team has at most ten webhooks, and another team sees none of them', async () => {
    const made: { id: string }[] = []
    for (let n = 0; n < 10; n++) made.push(await make({ name: `n${n}` }))
    assert.equal((await ada.ask('POST', path, order())).json.code, 'CONFLICT')
    const other = await app.team(ada, 'Other')
    const [first] = made
    for (const [method, rest] of [
      ['PATCH', ''],
      ['DELETE', ''],
      ['POST', '/test'],
      ['GET', '/deliveries'],
    ] as const) {
      const answer = await ada.ask(
        method,
        `/teams/${other}/webhooks/${first?.id}${rest}`,
        method === 'PATCH' ? {} : undefined,
      )
      assert.equal(answer.json.code, 'NOT_FOUND')
    }
    assert.deepEqual(await ada.must('GET', `/teams/${other}/webhooks`), [])
    for (const { id } of made) await ada.must('DELETE', `${path}/${id}`)
  })
})

test('without VITRINE_ALLOW_PRIVATE_HOSTS, a webhook may have only a public address over https://', async () => {
  await using receiver = await startReceiver()
  await using app = await startApp({ env: { VITRINE_ALLOW_PRIVATE_HOSTS: '0' } })
  const ada = await app.person()
  const teamId = await app.team(ada)
  for (const [url, error] of [
    [`https://127.0.0.1:${receiver.port}/`, /^The host is a private, loopback or link-local address/],
    // The name is resolved, and its address is checked.
    [`https://localhost:${receiver.port}/`, /^The host is a private, loopback or link-local address/],
    ['https://169.254.169.254/latest', /^The host is an address of a cloud’s metadata service/],
    [`http://127.0.0.1:${receiver.port}/`, /^The address must be https:/],
  ] as const) {
    const { id } = await ada.must('POST', `/teams/${teamId}/webhooks`, { name: 'x', url, events: ['drift'] })
    const answer = await ada.must('POST', `/teams/${teamId}/webhooks/${id}/test`)
    assert.equal(answer.delivered, false)
    assert.match(answer.error, error)
  }
  assert.deepEqual(receiver.received, [])
})
