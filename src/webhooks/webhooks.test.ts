import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { addMember, addTeam, openRooms, sessionCall, type Rooms } from '../../test/support/connected.ts'
import { largestTurn } from '../../test/support/largest-turn.ts'
import { until } from '../../test/support/until.ts'
import { startReceiver, type Receiver } from '../../test/support/webhook-receiver.ts'
import { makeCertificates } from '../../test/support/certificates.ts'
import { startPostgres } from '../../test/support/postgres.ts'
import { createDatasource } from '../datasources/datasources.ts'
import { reach } from '../datasources/require-reach.ts'
import type { Versions } from '../exposure/catalog-counts.ts'
import { putExposure } from '../exposure/exposure.ts'
import { newId, type ApiKeyId, type DatasourceId, type DeliveryId, type TeamId, type WebhookId } from '../ids.ts'
import { introspectDatasource } from '../introspection/introspect-job.ts'
import { ROWS_A_PORTION } from '../store/delete-in-portions.ts'
import type { Membership } from '../teams/require-membership.ts'
import { openDeliverer } from './delivery-worker.ts'
import { ConditionFinder } from './find-conditions.ts'
import { refusalsCondition, type Condition } from './event-messages.ts'
import { claimNext, enqueue } from './delivery-queue.ts'
import { send } from './send-message.ts'
import {
  createWebhook,
  deleteWebhook,
  listDeliveries,
  listWebhooks,
  type ShownWebhook,
  type WebhookDeps,
} from './webhooks.ts'

const SILENT = { error: () => undefined }
const SPEC = {
  name: 'orders',
  type: 'POSTGRES',
  connectionMode: 'DIRECT',
  host: '127.0.0.1',
  port: 1,
  database: 'd',
  username: 'u',
  password: 'p',
  sslMode: 'disable',
  accessMode: 'ROLE_BASED',
  minRole: 'ADMIN',
} as const

describe('webhooks', () => {
  let rooms: Rooms
  let receiver: Receiver
  let deps: WebhookDeps
  let teamId: TeamId
  let owner: Membership
  let now = Date.parse('2026-11-22T12:00:00Z')
  before(async () => {
    rooms = await openRooms()
    deps = { ...rooms, sending: { allowPrivateHosts: true, now: () => now } }
  })
  beforeEach(async () => {
    await rooms.store.write((tx) => tx.deleteFrom('webhooks').execute())
    teamId = await addTeam(rooms)
    owner = await addMember(rooms, teamId, 'OWNER')
    receiver = await startReceiver()
  })
  afterEach(() => receiver[Symbol.asyncDispose]())
  after(() => rooms[Symbol.asyncDispose]())

  const deliverer = () => openDeliverer({ ...rooms, ...deps, log: SILENT })
  const make = (by: Membership, more: Partial<Parameters<typeof createWebhook>[3]> = {}): Promise<ShownWebhook> =>
    createWebhook(deps, sessionCall(by.accountId, 'createWebhook'), by, {
      name: 'pager',
      url: receiver.url,
      events: ['refusals', 'drift', 'keyExpiring', 'datasourceError'],
      ...more,
    })
  const connect = async (more: object = {}): Promise<DatasourceId> => {
    const call = sessionCall(owner.accountId, 'createDatasource')
    return (await createDatasource(rooms, call, owner, { ...SPEC, ...more })).id as DatasourceId
  }
  const setStatus = (id: DatasourceId, status: 'ERROR' | 'CONNECTED') =>
    rooms.store.write((tx) =>
      tx.updateTable('datasources').set({ status, last_error: 'No answer.' }).where('id', '=', id).execute(),
    )
  const events = () => receiver.received.map(({ body }) => JSON.parse(body))
  /** Looks for conditions once, and sends what is due. */
  const round = async () => {
    await using worker = deliverer()
    await worker.look()
    await worker.deliver()
  }

  test('two webhooks of one account read its datasources once, and other requests run in between', async () => {
    for (let n = 0; n < 3; n++) await connect()
    const [first, second] = [await make(owner), await make(owner)]
    const rows = await rooms.store.db
      .selectFrom('webhooks')
      .selectAll()
      .where('id', 'in', [first.id, second.id] as WebhookId[])
      .execute()
    const calls = { counted: 0, turns: 0 }
    const { catalogs: real } = rooms
    const catalogs = { counts: (at: readonly Versions[]) => ((calls.counted += at.length), real.counts(at)) }
    const finder = new ConditionFinder({ ...deps, catalogs, now: () => now }, () => void calls.turns++)
    for (const row of rows) assert.deepEqual(await finder.conditionsFor(row), [])
    assert.deepEqual([rows.length, calls], [2, { counted: 3, turns: 3 + 2 }])
  })

  test('a webhook reports a datasource in ERROR once, and again after the next failure', async () => {
    const id = await connect()
    await make(owner)
    await setStatus(id, 'ERROR')
    await round()
    await round()
    assert.equal(events().length, 1)
    const [{ type, text, data }] = events()
    assert.deepEqual([type, text], ['datasourceError', '“orders” cannot be reached. No answer.'])
    assert.deepEqual(data, { datasource: { id, name: 'orders' }, error: 'No answer.' })
    await setStatus(id, 'CONNECTED')
    await round()
    assert.equal(events().length, 1)
    await setStatus(id, 'ERROR')
    await round()
    assert.equal(events().length, 2)
  })

  test('two processes that look at the same time report a condition only once', async () => {
    const id = await connect()
    await make(owner)
    await setStatus(id, 'ERROR')
    await using one = deliverer()
    await using other = deliverer()
    await Promise.all([one.look(), other.look()])
    await Promise.all([one.deliver(), other.deliver()])
    assert.equal(events().length, 1)
  })

  test('a webhook reports only what its account can reach, and stops when the account is no longer a manager', async () => {
    const hidden = await connect({ name: 'hidden', minRole: 'OWNER' })
    const admin = await addMember(rooms, teamId, 'ADMIN')
    await make(admin)
    await setStatus(hidden, 'ERROR')
    await round()
    assert.deepEqual(events(), [])
    const shown = await connect({ name: 'shown' })
    await setStatus(shown, 'ERROR')
    await rooms.store.write((tx) =>
      tx.updateTable('memberships').set({ role: 'MEMBER' }).where('account_id', '=', admin.accountId).execute(),
    )
    await round()
    assert.deepEqual(events(), [])
    await rooms.store.write((tx) =>
      tx.updateTable('memberships').set({ role: 'ADMIN' }).where('account_id', '=', admin.accountId).execute(),
    )
    await round()
    assert.deepEqual(
      events().map(({ data }) => data.datasource.name),
      ['shown'],
    )
  })

  test('a webhook reports nothing while its account does not have the second factor that the team requires', async () => {
    await make(owner)
    await setStatus(await connect(), 'ERROR')
    const require = (requireSecondFactor: boolean) =>
      rooms.store.write((tx) =>
        tx
          .updateTable('teams')
          .set({ settings: JSON.stringify({ requireSecondFactor }) })
          .where('id', '=', teamId)
          .execute(),
      )
    await require(true)
    await round()
    assert.deepEqual(events(), [])
    await require(false)
    await round()
    assert.equal(events().length, 1)
  })

  test('the refusals of a day are counted hour by hour, and other requests run in between', async () => {
    const id = await connect()
    const { id: webhookId } = await make(owner, { events: ['refusals'], refusals: { count: 1, minutes: 1_440 } })
    const row = await rowOf(webhookId)
    const call = sessionCall(owner.accountId, 'runQuery')
    const entry = { teamId, datasourceId: id, outcome: 'DENIED', code: 'QUERY_DENIED' } as const
    const hour = 3_600_000
    for (const ago of [24 * hour + 1, 24 * hour, 23 * hour + 1, 23 * hour, 22 * hour, 1, 0]) {
      const auditId = rooms.audit.record(call, entry)
      await rooms.audit.flush()
      const at = new Date(now - ago).toISOString()
      await rooms.store.write((tx) => tx.updateTable('audit').set({ at }).where('id', '=', auditId).execute())
    }
    let turns = 0
    const finder = new ConditionFinder({ ...deps, catalogs: rooms.catalogs, now: () => now }, () => void turns++)
    const found = await finder.conditionsFor(row)
    assert.deepEqual(
      found?.map(({ data }) => data),
      [{ refused: 6, minutes: 1_440, threshold: 1 }],
    )
    assert.equal(turns, 24)
  })

  test('a webhook counts only refused queries within the configured minutes', async () => {
    const id = await connect()
    await make(owner, { events: ['refusals'], refusals: { count: 3, minutes: 10 } })
    const call = sessionCall(owner.accountId, 'runQuery')
    const entry = { teamId, datasourceId: id, outcome: 'DENIED', code: 'QUERY_DENIED' } as const
    const at = Date.now()
    now = at + 60_000
    for (let n = 0; n < 2; n++) rooms.audit.record(call, entry)
    rooms.audit.record({ ...call, action: 'checkQuery' }, entry)
    await rooms.audit.flush()
    await round()
    assert.deepEqual(events(), [])
    rooms.audit.record(call, entry)
    await rooms.audit.flush()
    await round()
    assert.deepEqual(
      events().map(({ type, data }) => [type, data]),
      [['refusals', { refused: 3, minutes: 10, threshold: 3 }]],
    )
    now = at + 3_600_000
    await round()
    assert.equal(events().length, 1)
  })

  test('a webhook reports a key that expires within a week', async () => {
    await make(owner, { events: ['keyExpiring'] })
    const row = (name: string, days: number) => ({
      id: newId<ApiKeyId>(),
      account_id: owner.accountId,
      name,
      hash: name,
      hint: 'x',
      scopes: '[]',
      created_at: new Date(now).toISOString(),
      expires_at: new Date(now + days * 86_400_000).toISOString(),
      ended_team_ids: '[]',
    })
    await rooms.store.write((tx) =>
      tx
        .insertInto('api_keys')
        .values([row('soon', 6), row('later', 8)])
        .execute(),
    )
    await round()
    assert.deepEqual(
      events().map(({ data }) => data.key.name),
      ['soon'],
    )
  })

  test('a webhook reports drift when a database changes after its exposure was saved', async () => {
    await using postgres = await startPostgres()
    const database = await postgres.createDatabase('drifting', 'CREATE TABLE t (id int)')
    const { host, port, superuser: username, password } = postgres
    const id = await connect({ host, port, database, username, password })
    const call = sessionCall(owner.accountId, 'introspectDatasource')
    const at = () => reach(rooms, call, teamId, id)
    await introspectDatasource(rooms, call, await at())
    await putExposure(rooms, call, await at(), { tables: [{ schema: 'public', table: 't', columns: null }] })
    await make(owner, { events: ['drift'] })
    await round()
    assert.deepEqual(events(), [])
    await postgres.query(database, 'ALTER TABLE t ADD COLUMN added int')
    await introspectDatasource(rooms, call, await at())
    await round()
    assert.deepEqual(
      events().map(({ type, data }) => [type, data]),
      [['drift', { datasource: { id, name: 'orders' }, driftCount: 1 }]],
    )
  })

  const condition = (n: number): Condition => ({ ...refusalsCondition(n, { count: 1, minutes: 1 }), key: `k${n}` })
  const rowOf = (id: string) =>
    rooms.store.db
      .selectFrom('webhooks')
      .selectAll()
      .where('id', '=', id as WebhookId)
      .executeTakeFirstOrThrow()
  const deliveries = (id: string) => listDeliveries(deps, owner, id as WebhookId)

  test('a failed delivery is tried again with growing pauses and the same body, and becomes FAILED in the end', async () => {
    const { id } = await make(owner)
    receiver.status = 503
    await enqueue(rooms.store, await rowOf(id), [condition(1)], now)
    await using worker = deliverer()
    const pauses: number[] = []
    for (let n = 0; n < 20; n++) {
      await worker.deliver()
      const [delivery] = await deliveries(id)
      assert.ok(delivery !== undefined)
      if (delivery.nextAt === null) break
      const pause = Date.parse(delivery.nextAt) - now
      pauses.push(pause)
      await worker.deliver()
      assert.equal(receiver.received.length, pauses.length, 'delivered too early')
      now += pause
    }
    assert.ok(pauses.length >= 5 && pauses.every((pause, n) => pause > (pauses[n - 1] ?? 0)), pauses.join())
    const [delivery] = await deliveries(id)
    assert.deepEqual([delivery?.state, delivery?.attempts, delivery?.status], ['FAILED', receiver.received.length, 503])
    assert.equal(new Set(receiver.received.map(({ body }) => body)).size, 1)
    assert.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 1)
  })

  test('if a receiver answers 101, its delivery fails, and other deliveries are still sent', async () => {
    await using switching = createServer((socket) => {
      socket.on('error', () => undefined).resume()
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n')
    })
    await once(switching.listen(0, '127.0.0.1'), 'listening')
    const { port } = switching.address() as AddressInfo
    const [odd, other] = [await make(owner, { url: `http://127.0.0.1:${port}/` }), await make(owner)]
    for (const { id } of [odd, other]) await enqueue(rooms.store, await rowOf(id), [condition(1)], now)
    await using worker = deliverer()
    await worker.deliver()
    assert.equal(receiver.received.length, 1)
    const [delivery] = await deliveries(odd.id)
    assert.deepEqual([delivery?.state, delivery?.attempts, delivery?.status], ['WAITING', 1, null])
  })

  test('silent receivers of one account do not delay the message of another account', async () => {
    await using silent = createServer((socket) => void socket.on('error', () => undefined).resume())
    await once(silent.listen(0, '127.0.0.1'), 'listening')
    const { port } = silent.address() as AddressInfo
    const held = new Set<Socket>()
    let most = 0
    silent.on('connection', (socket) => {
      most = Math.max(most, held.add(socket).size)
      socket.once('close', () => held.delete(socket))
    })
    for (let n = 0; n < 10; n++) {
      const { id } = await make(owner, { url: `http://127.0.0.1:${port}/` })
      await enqueue(rooms.store, await rowOf(id), [condition(1), condition(2)], now)
    }
    const other = await addMember(rooms, await addTeam(rooms), 'OWNER')
    const { id } = await make(other)
    now += 1_000
    await enqueue(rooms.store, await rowOf(id), [condition(1)], now)
    {
      await using worker = deliverer()
      const delivered = worker.deliver()
      await until('the message of the other account', () => receiver.received.length === 1 && held.size > 0)
      assert.equal(most, 2)
      delivered.catch(() => undefined)
    }
    silent.close()
  })

  test('if a process ends, another process sends its delivery after the claim has expired', async () => {
    const { id } = await make(owner)
    await enqueue(rooms.store, await rowOf(id), [condition(1)], now)
    // The first process claims the delivery, and ends before it sends the message.
    assert.notEqual(await claimNext(rooms.store, id as WebhookId, now), null)
    await using other = deliverer()
    await other.deliver()
    assert.equal(receiver.received.length, 0)
    now += 61_000
    await other.deliver()
    assert.equal(receiver.received.length, 1)
    assert.equal((await deliveries(id))[0]?.state, 'DELIVERED')
  })

  test('the queue of a webhook has a limit, and dropped deliveries are counted', async () => {
    const { id } = await make(owner)
    const many = Array.from({ length: 205 }, (_, n) => condition(n))
    assert.equal(await enqueue(rooms.store, await rowOf(id), many, now), 200)
    assert.equal(await enqueue(rooms.store, await rowOf(id), many, now), 0)
    const [webhook] = await listWebhooks(deps, owner)
    assert.deepEqual([webhook?.waiting, webhook?.dropped], [200, 5])
  })

  test('a look begins and ends at most 200 conditions of a webhook, which watches at most 2,000', async () => {
    const { id } = await make(owner)
    const row = await rowOf(id)
    const many = Array.from({ length: 2_300 }, (_, n) => condition(n))
    const watched = async () =>
      (await rooms.store.db.selectFrom('webhook_conditions').select('key').where('webhook_id', '=', row.id).execute())
        .length
    const look = async (conditions: readonly Condition[]) => {
      await enqueue(rooms.store, row, conditions, now)
      return await watched()
    }
    assert.deepEqual([await look(many), await look(many)], [200, 400])
    for (let n = 0; n < 10; n++) await look(many)
    assert.equal(await watched(), 2_000)
    assert.deepEqual([await look([]), await look([])], [1_800, 1_600])
  })

  test('a deleted webhook disappears at once, and its deliveries are deleted a few at a time', async () => {
    const { id } = await make(owner)
    const row = { webhook_id: id as WebhookId, event: 'drift', body: '{}', attempts: 1, state: 'DELIVERED' } as const
    const times = { created_at: new Date(now).toISOString(), next_at: new Date(now).toISOString() }
    const rows = Array.from({ length: 300 }, () => ({ ...row, ...times, id: newId<DeliveryId>() }))
    await rooms.store.write((tx) => tx.insertInto('webhook_deliveries').values(rows).execute())
    await enqueue(rooms.store, await rowOf(id), [condition(1)], now)
    const count = async (table: 'webhook_deliveries' | 'webhook_conditions' | 'webhooks') =>
      (await rooms.store.db.selectFrom(table).selectAll().execute()).length
    const most = await largestTurn(
      () => count('webhook_deliveries'),
      async () => {
        await deleteWebhook(deps, sessionCall(owner.accountId, 'deleteWebhook'), owner, id as WebhookId)
        assert.deepEqual(await listWebhooks(deps, owner), [])
        assert.equal(await claimNext(rooms.store, id as WebhookId, now), null)
        await until('the webhook is deleted', async () => (await count('webhooks')) === 0)
      },
    )
    assert.deepEqual([await count('webhook_deliveries'), await count('webhook_conditions')], [0, 0])
    assert.ok(most <= 50, `${most} deliveries in one turn`)
  })

  test('deliveries older than a week are deleted in portions, except those that wait', async () => {
    const { id } = await make(owner)
    const row = { webhook_id: id as WebhookId, event: 'drift', body: '{}', attempts: 1, next_at: '2999-01-01T00:00:00.000Z' } as const // prettier-ignore
    const add = (count: number, days: number, state: 'DELIVERED' | 'WAITING') => {
      const created_at = new Date(now - days * 86_400_000).toISOString()
      const rows = Array.from({ length: count }, () => ({ ...row, id: newId<DeliveryId>(), state, created_at }))
      return rooms.store.write((tx) => tx.insertInto('webhook_deliveries').values(rows).execute())
    }
    for (let n = 0; n < 3; n++) await add(1_000, 8, 'DELIVERED')
    await add(2, 6, 'DELIVERED')
    await add(1, 8, 'WAITING')
    const count = async () => {
      const of = rooms.store.db.selectFrom('webhook_deliveries').select((eb) => eb.fn.countAll().as('n'))
      return Number((await of.executeTakeFirstOrThrow()).n)
    }
    const most = await largestTurn(count, round)
    assert.ok(most <= 2 * ROWS_A_PORTION, `${most} deliveries in one turn`)
    assert.equal(await count(), 3)
  })

  test('a webhook is delivered over TLS only if the certificate of the receiver is valid for its host', async () => {
    await using certificates = await makeCertificates()
    const { pem } = certificates
    await using secure = await startReceiver({ key: pem['server.key'] ?? '', cert: pem['server.crt'] ?? '' })
    const message = { id: '1', url: secure.url, secret: 'whsec_AAAA', body: '{}' }
    const { signal } = new AbortController()
    const ca = pem['ca.crt'] ?? ''
    assert.equal((await send(message, { ...deps.sending, ca }, signal)).delivered, true)
    for (const [url, trusted] of [
      [secure.url, pem['other.crt'] ?? ''],
      [secure.url.replace('localhost', '127.0.0.1'), ca],
    ] as const) {
      const { error } = await send({ ...message, url }, { ...deps.sending, ca: trusted }, signal)
      assert.equal(error, 'The certificate of the receiver is not valid.')
    }
    assert.equal(secure.received.length, 1)
  })
})
