import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { startPostgres, type TestPostgres } from '../../test/support/postgres.ts'
import {
  addMember,
  addTeam,
  keyCall,
  livingSession,
  openRooms,
  sessionCall,
  type Rooms,
} from '../../test/support/connected.ts'
import { until } from '../../test/support/until.ts'
import type { AuditItem } from '../audit/reading/page.ts'
import { createKey, revokeKey } from '../auth/api-keys.ts'
import type { Call } from '../auth/caller.ts'
import { listAudit } from '../audit/reading/within-reach.ts'
import { introspectDatasource } from '../introspection/introspect-job.ts'
import { changeDatasource, createDatasource, disableDatasource } from '../datasources/datasources.ts'
import { reach, type Reached } from '../datasources/require-reach.ts'
import type { AppError } from '../errors.ts'
import { putExposure } from '../exposure/exposure.ts'
import { asId, newId, type AccountId, type ApiKeyId, type DatasourceId, type TeamId } from '../ids.ts'
import type { Membership } from '../teams/require-membership.ts'
import { checkQuery } from './check-query.ts'
import { runQuery } from './run-query.ts'

const SLOW = 'SELECT count(*) FROM n a, n b, n c, n d'

describe('a query', () => {
  let postgres: TestPostgres
  let database: string
  let rooms: Rooms
  let teamId: TeamId
  let owner: Membership
  let id: DatasourceId
  before(async () => {
    postgres = await startPostgres()
    database = await postgres.createDatabase(
      'path',
      `CREATE TABLE customers (id int PRIMARY KEY, name text, ssn text);
       INSERT INTO customers VALUES (1, 'Ada', 'hidden'), (2, 'Bo', 'hidden');
       CREATE TABLE n (i int); INSERT INTO n SELECT generate_series(1, 2000)`,
    )
    rooms = await openRooms()
  })
  after(async () => {
    await rooms[Symbol.asyncDispose]()
    await postgres[Symbol.asyncDispose]()
  })
  beforeEach(async () => {
    teamId = await addTeam(rooms, { queryBudget: { limit: 5, windowSeconds: 86_400 }, postgresMaxPlanCost: 1e15 })
    owner = await addMember(rooms, teamId, 'OWNER')
    id = await connected()
    await introspectDatasource(rooms, call(), await at())
    await putExposure(rooms, call(), await at(), {
      tables: [
        { schema: 'public', table: 'customers', columns: ['id', 'name'] },
        { schema: 'public', table: 'n', columns: null },
      ],
    })
  })

  const call = (signal?: AbortSignal) => keyCall(owner.accountId, 'runQuery', {}, signal)
  const at = () => reach(rooms, call(), teamId, id)
  async function connected(): Promise<DatasourceId> {
    const address = { host: postgres.host, port: postgres.port, database, username: postgres.superuser }
    const secret = { sslMode: 'disable', password: postgres.password }
    const order = { name: 'shop', type: 'POSTGRES', connectionMode: 'DIRECT', ...address, ...secret } as const
    return (await createDatasource(rooms, call(), owner, order)).id as DatasourceId
  }
  const set = (settings: object) =>
    rooms.store.write((tx) =>
      tx
        .updateTable('teams')
        .set({ settings: JSON.stringify(settings) })
        .where('id', '=', teamId)
        .execute(),
    )
  /** Reaches the datasource and then runs the query, as the operations do. */
  const run = async (body: unknown, who = call(), on = id) =>
    runQuery(rooms, who, await reach(rooms, who, teamId, on), body)
  const checkAs = async (who: Call, body: unknown) => checkQuery(rooms, who, await reach(rooms, who, teamId, id), body)
  /** Returns the refusal, or null if the query was answered. */
  const refusal = async (answer: Promise<unknown>): Promise<AppError | null> =>
    answer.then(
      () => null,
      (error: AppError) => error,
    )
  async function lastRow(datasourceId?: DatasourceId): Promise<AuditItem | undefined> {
    const call = sessionCall(owner.accountId, 'listAudit')
    return (await listAudit(rooms, call, owner, { limit: 1, ...(datasourceId && { datasourceId }) })).items[0]
  }
  async function active(): Promise<number> {
    const rows = await postgres.query(
      'postgres',
      `SELECT count(*) FROM pg_stat_activity WHERE datname = '${database}' AND state = 'active'`,
    )
    return Number(rows[0]?.[0])
  }
  async function activeBecomes(count: number): Promise<void> {
    await until(`${count} queries are active`, async () => (await active()) === count)
  }

  test('the answer to a query has columns, rows, the row count, whether it was truncated, and the duration', async () => {
    const { json, headers } = await run({ sql: 'SELECT id, name FROM customers ORDER BY id', limit: 1 })
    const { durationMs, ...answer } = JSON.parse(String(json))
    assert.deepEqual(Object.keys(JSON.parse(String(json))), ['columns', 'rows', 'rowCount', 'truncated', 'durationMs'])
    assert.deepEqual(answer.rows, [[1, 'Ada']])
    assert.deepEqual([answer.rowCount, answer.truncated, durationMs > 0], [1, true, true])
    assert.deepEqual([headers['RateLimit-Limit'], headers['RateLimit-Remaining']], ['5', '4'])
    const row = await lastRow()
    assert.deepEqual(
      [row?.via, row?.action, row?.outcome, row?.query, row?.rowCount, row?.bytes],
      [
        'API_KEY',
        'runQuery',
        'ANSWERED',
        'SELECT id, name FROM customers ORDER BY id',
        1,
        Buffer.byteLength(String(json)),
      ],
    )
    assert.ok(row?.printed?.includes('customers') && (row.durationMs ?? 0) > 0)
  })

  test('the refusal of a hidden object links to the page of the console that can expose it, if the service knows its own address', async () => {
    const { config } = rooms
    for (const [own, origin] of [
      [{ publicUrl: 'https://vitrine.example', loopback: false }, 'https://vitrine.example'],
      [{ publicUrl: null, loopback: true }, rooms.origin()],
      [{ publicUrl: null, loopback: false }, null],
    ] as const) {
      const deps = { ...rooms, config: { ...config, ...own } }
      const refused = await refusal(runQuery(deps, call(), await at(), { sql: 'SELECT ssn FROM customers' }))
      const row = await lastRow()
      const page = `${origin}/app/t/${teamId}/datasources/${id}/exposure?from=${row?.id}`
      assert.equal(refused?.headers['vitrine-expose-url'], origin === null ? undefined : page)
      assert.equal(JSON.stringify(refused?.extra).includes(String(row?.id)), false)
    }
  })

  test('a query whose time runs out before it reaches the database is answered and audited as OVERLOADED', async () => {
    await set({ queryBudget: { limit: 100, windowSeconds: 60 }, statementTimeoutMs: 100 })
    const long = (n: number) => `SELECT ${Array.from({ length: 4_000 }, (_, i) => `i + ${n}${i}`).join()} FROM n`
    const texts = Array.from({ length: 40 }, (_, n) => long(n))
    const errors = await Promise.all(texts.map((sql) => refusal(run({ sql }))))
    const codes = new Set(errors.map((error) => error?.code))
    assert.ok(codes.has('OVERLOADED') && !codes.has('INTERNAL') && !codes.has(undefined), [...codes].join())
    const late = errors.find((error) => error?.message.startsWith('The query could not be checked in time'))
    assert.equal(late?.extra['retryAfter'], 1, 'as long as the caller waited, in whole seconds')
    const checks = await Promise.all(texts.map((sql) => refusal(checkAs(call(), { sql }))))
    assert.ok(!checks.some((error) => error !== null && error.code !== 'OVERLOADED'), String(checks[0]?.code))
    const { items } = await listAudit(rooms, sessionCall(owner.accountId, 'listAudit'), owner, { code: ['OVERLOADED'] })
    assert.ok(items.length > 0 && items.every(({ outcome }) => outcome === 'FAILED'))
  })

  test('an owner of many teams does not delay the long queries of another owner', async () => {
    const long = (n: number) =>
      `SELECT ${Array.from({ length: 1_600 }, (_, i) => `i + ${n}${i}`).join()} FROM n LIMIT 1`
    const settings = { postgresMaxPlanCost: 1e15, statementTimeoutMs: 120_000 }
    const teamOf = async (account: AccountId) => {
      teamId = await addTeam(rooms, settings)
      owner = { teamId, accountId: account, role: 'OWNER', status: 'ACTIVE' }
      const row = { team_id: teamId, account_id: account, role: 'OWNER', status: 'ACTIVE' } as const
      const created_at = new Date().toISOString()
      await rooms.store.write((tx) =>
        tx
          .insertInto('memberships')
          .values({ ...row, created_at })
          .execute(),
      )
      id = await connected()
      await introspectDatasource(rooms, call(), await at())
      await putExposure(rooms, call(), await at(), { tables: [{ schema: 'public', table: 'n', columns: null }] })
      return await at()
    }
    const vic = owner.accountId
    const eve = (await addMember(rooms, teamId, 'MEMBER')).accountId
    const places = [await teamOf(eve), await teamOf(eve), await teamOf(eve), await teamOf(eve)]
    const other = await teamOf(vic)
    const answered: string[] = []
    const ask = async (place: Reached, sql: string, by: string) => {
      await runQuery(rooms, keyCall(place.membership.accountId, 'runQuery'), place, { sql })
      answered.push(by)
    }
    const asked = places.flatMap((place, n) => [1, 2, 3].map((each) => ask(place, long(n * 10 + each), 'eve')))
    await Promise.all([...asked, ask(other, long(99), 'vic')])
    assert.ok(answered.indexOf('vic') <= 4, answered.join(' '))
  })

  test('the checks of a query come in the order 404, 409, 400, 429, guard, and a query that the guard refuses spends budget', async () => {
    const left = (error: AppError | null) => error?.headers['RateLimit-Remaining']
    assert.equal((await refusal(run({}, call(), newId<DatasourceId>())))?.code, 'NOT_FOUND')
    const raw = await connected()
    assert.equal((await refusal(run({ nonsense: 1 }, call(), raw)))?.code, 'NOT_CONNECTED')
    // Rows of the other datasource's last queries may still be written.
    assert.equal((await lastRow(raw))?.code, 'NOT_CONNECTED')
    const bad = await refusal(run({ sql: 1 }))
    assert.deepEqual([bad?.code, left(bad)], ['INVALID_REQUEST', undefined])
    const malformed = await refusal(run({ sql: 'SELEC 1' }))
    assert.deepEqual([malformed?.code, left(malformed)], ['INVALID_QUERY', '4'])
    const denied = await refusal(run({ sql: 'SELECT ssn FROM customers' }))
    assert.deepEqual([denied?.code, left(denied)], ['QUERY_DENIED', '3'])
    assert.equal((denied?.extra['blocked'] as { kind: string }).kind, 'column')
    const row = await lastRow()
    assert.deepEqual(
      [row?.outcome, row?.code, row?.blocked?.kind, row?.query],
      ['DENIED', 'QUERY_DENIED', 'column', 'SELECT ssn FROM customers'],
    )
    const failed = await refusal(run({ sql: 'SELECT 1/0' }))
    assert.deepEqual([failed?.code, left(failed)], ['QUERY_FAILED', '2'])
    assert.deepEqual([(await lastRow())?.outcome, (await lastRow())?.code], ['FAILED', 'QUERY_FAILED'])
    await run({ sql: 'SELECT 1' })
    await run({ sql: 'SELECT 1' })
    const limited = await refusal(run({ sql: 'SELECT ssn FROM customers' }))
    assert.deepEqual([limited?.code, left(limited)], ['RATE_LIMITED', '0'])
    assert.equal((await refusal(run({ sql: 1 })))?.code, 'INVALID_REQUEST')
    await disableDatasource(rooms, call(), await at())
    assert.equal((await refusal(run({ sql: 1 })))?.code, 'DATASOURCE_DISABLED')
  })

  test('within a minute, one audit row counts the refusals of a caller with one code, if they spent no budget', async () => {
    const who = call()
    const refuse = async (code: string, body: unknown, on = id) => {
      for (let n = 0; n < 20; n++) assert.equal((await refusal(run(body, who, on)))?.code, code)
    }
    await refuse('NOT_CONNECTED', { sql: 'SELECT 1' }, await connected())
    await refuse('INVALID_REQUEST', { sql: 1 })
    await disableDatasource(rooms, call(), await at())
    await refuse('DATASOURCE_DISABLED', { sql: 'SELECT 1' })
    for (const code of ['NOT_CONNECTED', 'INVALID_REQUEST', 'DATASOURCE_DISABLED']) {
      const { items } = await listAudit(rooms, sessionCall(owner.accountId, 'listAudit'), owner, { code: [code] })
      assert.equal(
        items.reduce((sum, { times = 1 }) => sum + times, 0),
        20,
      )
      // A new minute may have begun.
      assert.ok(items.length < 10, `${items.length} rows`)
    }
  })

  test('the query is cancelled in the database if the caller hangs up', async () => {
    const caller = new AbortController()
    const answer = refusal(run({ sql: SLOW }, call(caller.signal)))
    await activeBecomes(1)
    caller.abort(new Error('hung up'))
    assert.notEqual(await answer, null)
    await activeBecomes(0)
    const row = await lastRow()
    assert.deepEqual([row?.outcome, row?.code, row?.query], ['FAILED', undefined, SLOW])
    // The connection is free for the next query.
    assert.equal(JSON.parse(String((await run({ sql: 'SELECT 1' })).json)).rowCount, 1)
  })

  test('a query over its time limit is answered QUERY_TIMEOUT, and is cancelled in the database', async () => {
    await set({ statementTimeoutMs: 200, postgresMaxPlanCost: 1e15 })
    // On a busy machine, the time may run out before the query runs.
    await until('the query runs into its limit', async () => {
      const code = (await refusal(run({ sql: SLOW })))?.code
      assert.ok(['QUERY_TIMEOUT', 'OVERLOADED', 'DATASOURCE_UNAVAILABLE'].includes(String(code)), code)
      return code === 'QUERY_TIMEOUT'
    })
    await activeBecomes(0)
  })

  test('a query over the cost limit is denied, and the refusal says the estimate and the limit', async () => {
    await set({ postgresMaxPlanCost: 1_000 })
    const error = await refusal(run({ sql: SLOW }))
    assert.equal(error?.code, 'QUERY_DENIED')
    assert.equal((error?.extra['blocked'] as { kind: string }).kind, 'cost')
    assert.ok(Number(error?.extra['estimate']) > 1_000 && error?.extra['limit'] === 1_000)
  })

  test('if the database is gone, a query is answered DATASOURCE_UNAVAILABLE, and the datasource gets the status ERROR', async () => {
    await changeDatasource(rooms, call(), await at(), { port: 1, password: postgres.password })
    assert.equal((await refusal(run({ sql: 'SELECT 1' })))?.code, 'DATASOURCE_UNAVAILABLE')
    const { row } = await at()
    assert.deepEqual([row.status, typeof row.last_error, typeof row.last_tested_at], ['ERROR', 'string', 'string'])
    // The next query tries to connect again.
    assert.equal((await refusal(run({ sql: 'SELECT 1' })))?.code, 'DATASOURCE_UNAVAILABLE')
  })

  test('if the team redacts literals, the audit keeps no literal of a query', async () => {
    await set({ auditRedactLiterals: true })
    const check = (sql: string) => checkAs(sessionCall(owner.accountId, 'checkQuery'), { sql })
    await run({ sql: "SELECT id, 'private' AS x FROM customers WHERE id = 4711 -- private" })
    const answered = await lastRow()
    assert.deepEqual(
      [answered?.outcome, answered?.query, answered?.redacted],
      ['ANSWERED', 'SELECT id, ? AS x FROM customers WHERE id = ?', true],
    )
    assert.ok(answered?.printed?.includes('customers') && !/private|4711/.test(answered.printed))
    for (const [sql, query, name] of [
      ["SELECT ssn FROM customers WHERE name = 'private'", 'SELECT ssn FROM customers WHERE name = ?', 'ssn'],
      // In a text that does not parse, the positions of literals are unknown.
      ["SELEC 'private'", undefined, undefined],
      ["SELECT 'private", undefined, undefined],
    ] as const) {
      for (const ask of [() => refusal(run({ sql })), () => check(sql)]) {
        await ask()
        const row = await lastRow()
        assert.deepEqual([row?.query, row?.redacted, row?.blocked?.name], [query, true, name])
        assert.ok(!JSON.stringify(row).includes('private'))
      }
    }
    await set({ auditRedactLiterals: false })
    await run({ sql: "SELECT 'shown' AS x" })
    assert.deepEqual([(await lastRow())?.query, (await lastRow())?.redacted], ["SELECT 'shown' AS x", undefined])
  })

  test('queries are refused while the audit is behind', async () => {
    const query = 'x'.repeat(1 << 20)
    for (let n = 0; n < 65; n++) rooms.audit.record(call(), { teamId, outcome: 'ANSWERED', query })
    assert.equal((await refusal(run({ sql: 'SELECT 1' })))?.code, 'OVERLOADED')
    await rooms.audit.flush()
    assert.equal(await refusal(run({ sql: 'SELECT 1' })), null)
  })

  describe('check', () => {
    const check = (body: unknown, who = sessionCall(owner.accountId, 'checkQuery')) => checkAs(who, body)

    test('a check says whether a query would be allowed, denied or invalid, and spends no budget', async () => {
      const allowed = await check({ sql: 'SELECT id FROM customers' })
      assert.equal(allowed.verdict, 'ALLOWED')
      assert.ok(allowed.printed?.includes('customers') && typeof allowed.estimate === 'number')
      const denied = await check({ sql: 'SELECT ssn FROM customers' })
      assert.deepEqual([denied.verdict, denied.blocked?.kind, typeof denied.hint], ['DENIED', 'column', 'string'])
      const invalid = await check({ sql: 'SELEC 1' })
      assert.deepEqual([invalid.verdict, typeof invalid.position], ['INVALID', 'number'])
      await set({ postgresMaxPlanCost: 1_000, queryBudget: { limit: 5, windowSeconds: 86_400 } })
      const dear = await check({ sql: SLOW })
      assert.deepEqual([dear.verdict, dear.blocked?.kind, (dear.estimate ?? 0) > 1_000], ['DENIED', 'cost', true])
      assert.equal((await run({ sql: 'SELECT 1' })).headers['RateLimit-Remaining'], '4')
      await assert.rejects(check({ sql: 1 }), { code: 'INVALID_REQUEST' })
      assert.equal((await lastRow())?.action, 'checkQuery')
    })

    test("a query can be checked for another role, but never for a role above the caller's own", async () => {
      const sql = 'SELECT 1'
      const admin = await addMember(rooms, teamId, 'ADMIN')
      const asAdmin = sessionCall(admin.accountId, 'checkQuery')
      await changeDatasource(rooms, call(), await at(), { minRole: 'ADMIN' })
      assert.equal((await check({ sql, as: { role: 'ADMIN' } }, asAdmin)).verdict, 'ALLOWED')
      assert.equal((await check({ sql, as: { role: 'MEMBER' } }, asAdmin)).verdict, 'DENIED')
      await assert.rejects(check({ sql, as: { role: 'OWNER' } }, asAdmin), { code: 'ROLE_REQUIRED' })
      for (const as of [{}, { role: 'BOSS' }, { role: 'ADMIN', more: 1 }, 'ADMIN', null]) {
        await assert.rejects(check({ sql, as }), { code: 'INVALID_REQUEST' })
      }
      await assert.rejects(check({ sql, as: { keyId: newId() } }), { code: 'NOT_FOUND' })
    })

    test("a query can be checked for one of the caller's own keys, with the scopes and restrictions of that key", async () => {
      const mine = await livingSession(rooms, owner.accountId, 'createKey')
      const ask = (keyId: string) => check({ sql: 'SELECT 1', as: { keyId } })
      const other = await connected()
      for (const [order, verdict] of [
        [{ scopes: ['data:read'] }, 'ALLOWED'],
        [{ scopes: ['data:read'], teamIds: [teamId], datasourceIds: [id] }, 'ALLOWED'],
        [{ scopes: ['data:schema'] }, 'DENIED'],
        [{ scopes: ['data:read'], datasourceIds: [other] }, 'DENIED'],
      ] as const) {
        const key = await createKey(rooms, mine, { name: 'k', ...order })
        const result = await ask(key.id)
        assert.deepEqual(
          [result.verdict, typeof result.error],
          [verdict, verdict === 'DENIED' ? 'string' : 'undefined'],
        )
      }
      const revoked = await createKey(rooms, mine, { name: 'k', scopes: ['data:read'] })
      await revokeKey(rooms, mine, asId<ApiKeyId>(revoked.id))
      assert.equal((await ask(revoked.id)).verdict, 'DENIED')
      const stranger = await addMember(rooms, teamId, 'ADMIN')
      const theirs = await createKey(rooms, await livingSession(rooms, stranger.accountId, 'x'), {
        name: 'k',
        scopes: ['data:read'],
      })
      await assert.rejects(ask(theirs.id), { code: 'NOT_FOUND' })
    })
  })
})
