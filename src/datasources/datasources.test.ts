import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Client } from 'pg'
import { startPostgres, type TestPostgres } from '../../test/support/postgres.ts'
import { addMember, addTeam, keyCall, openRooms, sessionCall, type Rooms } from '../../test/support/connected.ts'
import { until } from '../../test/support/until.ts'
import type { AppError } from '../errors.ts'
import { putExposure } from '../exposure/exposure.ts'
import { newId, type DatasourceId, type JobId, type TeamId } from '../ids.ts'
import type { Membership } from '../teams/require-membership.ts'
import { getAccess, putAccess } from './access-list.ts'
import { listAudit } from '../audit/reading/within-reach.ts'
import { cancelJob } from '../jobs/cancel-job.ts'
import { testDatasource } from './test-datasource.ts'
import {
  changeDatasource,
  createDatasource,
  deleteDatasource,
  disableDatasource,
  enableDatasource,
  listDatasources,
  type NewDatasource,
} from './datasources.ts'
import { describeDatasource } from '../descriptions/describe-datasource.ts'
import { introspectDatasource } from '../introspection/introspect-job.ts'
import { readRow } from './datasource-rows.ts'
import { reach, type Reached } from './require-reach.ts'

const FIELDS = [
  'accessMode',
  'config',
  'connectionMode',
  'createdAt',
  'database',
  'driftCount',
  'exposedTableCount',
  'exposureVersion',
  'host',
  'id',
  'lastError',
  'lastGrade',
  'lastTestedAt',
  'minRole',
  'name',
  'port',
  'schemaCapturedAt',
  'sslMode',
  'status',
  'tableCount',
  'teamId',
  'type',
  'updatedAt',
  'username',
]

describe('datasources', () => {
  let postgres: TestPostgres
  let database: string
  let rooms: Rooms
  let teamId: TeamId
  let owner: Membership
  before(async () => {
    postgres = await startPostgres()
    database = await postgres.createDatabase(
      'rooms',
      `CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, ssn text);
       CREATE TABLE orders (id int PRIMARY KEY, customer_id int REFERENCES customers (id));
       CREATE VIEW names AS SELECT name FROM customers;
       COMMENT ON TABLE customers IS 'Who buys.';`,
    )
    rooms = await openRooms()
    teamId = await addTeam(rooms)
    owner = await addMember(rooms, teamId, 'OWNER')
  })
  after(async () => {
    await rooms[Symbol.asyncDispose]()
    await postgres[Symbol.asyncDispose]()
  })

  const call = (action: string) => sessionCall(owner.accountId, action)
  const spec = (): NewDatasource => ({
    name: 'shop',
    type: 'POSTGRES',
    connectionMode: 'DIRECT',
    host: postgres.host,
    port: postgres.port,
    database,
    username: postgres.superuser,
    password: postgres.password,
    sslMode: 'disable',
    minRole: 'MEMBER',
  })
  async function create(more: Partial<NewDatasource> = {}): Promise<DatasourceId> {
    const item = await createDatasource(rooms, call('createDatasource'), owner, { ...spec(), ...more })
    return item.id as DatasourceId
  }
  const at = (id: DatasourceId, who = call('getDatasource')): Promise<Reached> => reach(rooms, who, teamId, id)
  const columns = (...names: string[]) => ({ schema: 'public', table: 'customers', columns: names })

  test('a new datasource is PENDING, and a manager sees exactly the declared fields and no secret', async () => {
    const item = await createDatasource(rooms, call('createDatasource'), owner, spec())
    assert.deepEqual(Object.keys(item).sort(), FIELDS)
    assert.deepEqual(
      [item.status, item.lastTestedAt, item.lastError, item.exposedTableCount],
      ['PENDING', null, null, 0],
    )
    const stored = await rooms.store.db.selectFrom('datasource_secrets').selectAll().execute()
    assert.ok(stored.length > 0)
    assert.ok(!JSON.stringify([item, stored]).includes(postgres.password))
  })

  test('a team has at most 500 datasources', async () => {
    const team = await addTeam(rooms)
    const maker = await addMember(rooms, team, 'OWNER')
    const make = () => createDatasource(rooms, sessionCall(maker.accountId, 'createDatasource'), maker, spec())
    const { id } = await make()
    const row = await readRow(rooms.store, id as DatasourceId)
    assert.ok(row !== undefined)
    const copies = Array.from({ length: 499 }, () => ({ ...row, id: newId<DatasourceId>() }))
    await rooms.store.write(async (tx) => {
      for (const copy of copies) await tx.insertInto('datasources').values(copy).execute()
    })
    await assert.rejects(make(), { code: 'CONFLICT', message: /at most 500 datasources/ })
  })

  test('settings that the driver does not accept are refused, and the error names them', async () => {
    for (const [more, field] of [
      [{ host: '' }, 'host'],
      [{ port: 70_000 }, 'port'],
      [{ config: { nonsense: 1 } }, 'config'],
      [{ connectionMode: 'SSH_TUNNEL' }, 'config.ssh'],
      [{ type: 'BIGQUERY' }, 'connectionMode'],
    ] as const) {
      await assert.rejects(create(more), (error: AppError) => {
        assert.equal(error.code, 'INVALID_REQUEST')
        assert.ok(JSON.stringify(error.extra['details']).includes(field))
        assert.ok(!JSON.stringify([error.message, error.extra]).includes(postgres.password))
        return true
      })
    }
  })

  describe('reach', () => {
    const table = [
      { who: 'an OWNER', role: 'OWNER', mode: 'ROLE_BASED', min: 'OWNER', reached: true },
      { who: 'an ADMIN below minRole', role: 'ADMIN', mode: 'ROLE_BASED', min: 'OWNER', reached: false },
      { who: 'an ADMIN', role: 'ADMIN', mode: 'ROLE_BASED', min: 'ADMIN', reached: true },
      { who: 'a MEMBER below minRole', role: 'MEMBER', mode: 'ROLE_BASED', min: 'ADMIN', reached: false },
      { who: 'a MEMBER', role: 'MEMBER', mode: 'ROLE_BASED', min: 'MEMBER', reached: true },
      { who: 'an ADMIN who is not listed', role: 'ADMIN', mode: 'EXPLICIT', min: 'MEMBER', reached: false },
      { who: 'a MEMBER who is listed', role: 'MEMBER', mode: 'EXPLICIT', min: 'OWNER', reached: true, listed: true },
      { who: 'an OWNER who is not listed', role: 'OWNER', mode: 'EXPLICIT', min: 'OWNER', reached: true },
      { who: 'an INVITED OWNER', role: 'OWNER', mode: 'ROLE_BASED', min: 'MEMBER', reached: false, status: 'INVITED' },
    ] as const
    for (const { who, role, mode, min, reached, ...more } of table) {
      test(`${who} ${reached ? 'reaches' : 'does not reach'} ${mode} with minRole ${min}`, async () => {
        const id = await create({ accessMode: mode, minRole: min })
        const member = await addMember(rooms, teamId, role, 'status' in more ? more.status : 'ACTIVE')
        if ('listed' in more)
          await putAccess(rooms, call('putAccess'), await at(id), { accountIds: [member.accountId] })
        const found = await reach(rooms, sessionCall(member.accountId, 'x'), teamId, id).catch(
          (error: AppError) => error.code,
        )
        assert.equal(typeof found === 'string' ? found : found.id, reached ? id : 'NOT_FOUND')
        const listed = await listDatasources(rooms, sessionCall(member.accountId, 'x'), member)
        assert.equal(
          listed.some((item) => item.id === id),
          reached,
        )
      })
    }

    test('a stranger, an INVITED member, a restricted or ended key, another team and an unknown id get exactly the same refusal', async () => {
      const id = await create()
      const other = await addTeam(rooms)
      const [stranger, invited] = [
        await addMember(rooms, other, 'OWNER'),
        await addMember(rooms, teamId, 'OWNER', 'INVITED'),
      ]
      const me = owner.accountId
      const refusals = await Promise.all(
        [
          reach(rooms, sessionCall(stranger.accountId, 'x'), teamId, id),
          reach(rooms, sessionCall(stranger.accountId, 'x'), other, id),
          reach(rooms, sessionCall(invited.accountId, 'x'), teamId, id),
          reach(rooms, keyCall(me, 'x', { teamIds: [other] }), teamId, id),
          reach(rooms, keyCall(me, 'x', { datasourceIds: [newId<DatasourceId>()] }), teamId, id),
          reach(rooms, keyCall(me, 'x', { ended: [teamId] }), teamId, id),
          reach(rooms, call('x'), teamId, newId<DatasourceId>()),
          reach(rooms, call('x'), newId<TeamId>(), id),
        ].map((it) =>
          it.then(
            () => 'reached',
            (error: AppError) => JSON.stringify([error.code, error.message, error.extra]),
          ),
        ),
      )
      assert.equal(new Set(refusals).size, 1)
      assert.match(refusals[0] ?? '', /NOT_FOUND/)
      assert.equal(
        (await reach(rooms, keyCall(me, 'x', { teamIds: [teamId], datasourceIds: [id] }), teamId, id)).id,
        id,
      )
    })

    test('a caller whose role is too low gets ROLE_REQUIRED, which is audited', async () => {
      const id = await create()
      const member = await addMember(rooms, teamId, 'MEMBER')
      const asked = reach(rooms, sessionCall(member.accountId, 'changeDatasource'), teamId, id, { role: 'ADMIN' })
      await assert.rejects(asked, { code: 'ROLE_REQUIRED', extra: { requiredRole: 'ADMIN' } })
      const [row] = (await listAudit(rooms, call('listAudit'), owner, { limit: 1 })).items
      assert.deepEqual(
        [row?.action, row?.outcome, row?.code, row?.datasourceId],
        ['changeDatasource', 'DENIED', 'ROLE_REQUIRED', id],
      )
    })
  })

  test('a change of a datasource’s address requires the password again, sets PENDING and keeps the exposure', async () => {
    const id = await create()
    await introspectDatasource(rooms, call('introspectDatasource'), await at(id))
    await testDatasource(rooms, call('testDatasource'), await at(id))
    await putExposure(rooms, call('putExposure'), await at(id), { tables: [columns('id')] })
    const change = async (it: Parameters<typeof changeDatasource>[3]) =>
      changeDatasource(rooms, call('changeDatasource'), await at(id), it)
    await assert.rejects(change({ port: 1 }), { code: 'INVALID_REQUEST' })
    assert.equal((await at(id)).row.status, 'CONNECTED')
    assert.equal((await change({ name: 'other' })).status, 'CONNECTED')
    const moved = await change({ port: 1, password: postgres.password })
    assert.deepEqual([moved.status, moved.port, moved.lastTestedAt, moved.exposedTableCount], ['PENDING', 1, null, 1])
    const report = await testDatasource(rooms, call('testDatasource'), await at(id))
    assert.deepEqual([report.ok, report.grade, typeof report.error], [false, 'FAIL', 'string'])
    const { row } = await at(id)
    assert.deepEqual([row.status, row.last_error], ['ERROR', report.error])
    assert.equal((await change({ port: postgres.port, password: postgres.password })).status, 'PENDING')
    assert.equal((await testDatasource(rooms, call('testDatasource'), await at(id))).ok, true)
    const back = await at(id)
    assert.deepEqual([back.row.status, back.row.last_error], ['CONNECTED', null])
  })

  test('a wrong password is reported as a failed step, which does not contain the password', async () => {
    const id = await create({ password: 'not the password' })
    const report = await testDatasource(rooms, call('testDatasource'), await at(id))
    assert.equal(report.ok, false)
    assert.ok(report.steps.some((step) => step.status === 'FAIL'))
    assert.ok(!JSON.stringify(report).includes('not the password'))
  })

  test('two tests of one datasource may run at the same time, and a third is refused with RATE_LIMITED', async () => {
    const id = await create()
    const reached = await at(id)
    const test = () => testDatasource(rooms, call('testDatasource'), reached)
    const codes = (await Promise.allSettled([test(), test(), test()])).map((each) =>
      each.status === 'fulfilled' ? 'reported' : (each.reason as AppError).code,
    )
    assert.deepEqual(codes, ['reported', 'reported', 'RATE_LIMITED'])
    // A failed test also makes room for the next one.
    const lost = { ...reached, id: newId<DatasourceId>() }
    const nowhere = { ...lost, row: { ...reached.row, id: lost.id, host: '127.0.0.1', port: 1 } }
    for (let i = 0; i < 3; i++) await testDatasource(rooms, call('testDatasource'), nowhere).catch(() => undefined)
    await test()
    const error = await Promise.all([test(), test(), test()]).catch((reason: unknown) => reason as AppError)
    assert.ok('extra' in error && Number.isInteger(error.extra['retryAfter']))
  })

  test('a datasource stays DISABLED despite tests and changes, until it is enabled', async () => {
    const id = await create()
    assert.equal((await disableDatasource(rooms, call('disableDatasource'), await at(id))).status, 'DISABLED')
    await testDatasource(rooms, call('testDatasource'), await at(id))
    const changed = await changeDatasource(rooms, call('x'), await at(id), { port: 1, password: postgres.password })
    assert.equal(changed.status, 'DISABLED')
    await assert.rejects(introspectDatasource(rooms, call('x'), await at(id)), { code: 'DATASOURCE_DISABLED' })
    assert.equal((await enableDatasource(rooms, call('enableDatasource'), await at(id))).status, 'PENDING')
  })

  test('introspection counts new, removed and changed tables, and concurrent introspections share one job', async () => {
    const own = await postgres.createDatabase('drift', 'CREATE TABLE a (x int); CREATE TABLE b (x int)')
    const id = await create({ database: own })
    const look = async () => introspectDatasource(rooms, call('introspectDatasource'), await at(id))
    const [one, two] = await Promise.all([look(), look()])
    assert.deepEqual(one, two)
    assert.ok('tableCount' in one)
    assert.deepEqual([one.tableCount, one.added, one.removed, one.changed], [2, 2, 0, 0])
    await postgres.query(own, 'ALTER TABLE a ADD y int; DROP TABLE b; CREATE TABLE c (x int)')
    const next = await look()
    assert.ok('tableCount' in next)
    assert.deepEqual([next.tableCount, next.added, next.removed, next.changed], [2, 1, 1, 1])
  })

  test('a long introspection becomes a job, and stores nothing if the job is cancelled', async () => {
    const own = await postgres.createDatabase('locked', 'CREATE TABLE a (x int)')
    const id = await create({ database: own })
    const locker = new Client({ connectionString: postgres.url(own) })
    await locker.connect()
    try {
      await locker.query('BEGIN; LOCK TABLE pg_catalog.pg_description IN ACCESS EXCLUSIVE MODE')
      const began = await introspectDatasource(rooms, call('introspectDatasource'), await at(id), 50)
      assert.ok('jobId' in began)
      assert.equal((await rooms.jobs.find(id, began.jobId))?.state, 'RUNNING')
      assert.deepEqual(await introspectDatasource(rooms, call('introspectDatasource'), await at(id), 50), began)
      await cancelJob(rooms, call('cancelJob'), await at(id), began.jobId)
      const { items } = await rooms.audit.page(teamId, { datasourceIds: [id], limit: 2 })
      assert.deepEqual(
        items.map((row) => [row.action, row.outcome, row.code]),
        [
          ['cancelJob', 'ANSWERED', undefined],
          ['introspectDatasource', 'FAILED', 'CONFLICT'],
        ],
      )
      await assert.rejects(cancelJob(rooms, call('cancelJob'), await at(id), newId<JobId>()), { code: 'NOT_FOUND' })
      assert.equal((await rooms.jobs.find(id, began.jobId))?.state, 'CANCELLED')
      assert.deepEqual([(await at(id)).row.catalog_version, (await at(id)).row.status], [0, 'PENDING'])
      const next = await introspectDatasource(rooms, call('introspectDatasource'), await at(id), 50)
      assert.ok('jobId' in next && next.jobId !== began.jobId)
      await locker.query('ROLLBACK')
      const job = await rooms.jobs.start(id, 'introspect', () => assert.fail('it is running'))
      await job.ended()
      const state = await rooms.jobs.find(id, next.jobId)
      assert.deepEqual([state?.state, (state?.result as { tableCount: number }).tableCount], ['DONE', 1])
    } finally {
      await locker.end()
    }
  })

  test('new secrets are never sent to an old address', async () => {
    const id = await create()
    const old = await at(id)
    await changeDatasource(rooms, call('x'), old, { host: 'localhost', password: postgres.password })
    await assert.rejects(rooms.leases.connect(old, new AbortController().signal), { code: 'OVERLOADED' })
    await assert.rejects(changeDatasource(rooms, call('x'), old, { name: 'late' }), { code: 'OVERLOADED' })
  })

  test('a description shows the exposed tables, full=1 shows managers all tables, and both answers have their own ETags', async () => {
    const id = await create()
    const member = await addMember(rooms, teamId, 'MEMBER')
    const asMember = sessionCall(member.accountId, 'describeDatasource')
    const describeIt = async (full: boolean, who = call('describeDatasource')) =>
      describeDatasource(rooms, who, await at(id, who), { full })
    assert.deepEqual(JSON.parse((await describeIt(false)).json.toString()).tables, [])
    await assert.rejects(describeIt(true, asMember), { code: 'ROLE_REQUIRED' })
    await assert.rejects(describeIt(true), { code: 'NOT_CONNECTED' })
    await introspectDatasource(rooms, call('introspectDatasource'), await at(id))
    await putExposure(rooms, call('putExposure'), await at(id), {
      tables: [
        columns('id', 'name'),
        { ...columns(), table: 'orders', columns: null },
        { ...columns(), table: 'names', columns: null },
      ],
    })
    const shown = await describeIt(false)
    const { tables, vocabulary, schemaCapturedAt } = JSON.parse(shown.json.toString())
    assert.deepEqual(vocabulary, { schema: 'schema', table: 'table', queryLanguage: 'PostgreSQL SQL' })
    assert.ok(!Number.isNaN(Date.parse(schemaCapturedAt)))
    const of = (name: string) => tables.find((it: { table: string }) => it.table === name)
    assert.deepEqual(
      of('customers').columns.map((it: { name: string }) => it.name),
      ['id', 'name'],
    )
    assert.deepEqual([of('customers').columnsRestricted, of('orders').columnsRestricted], [true, false])
    assert.deepEqual(
      [of('customers').description, of('customers').documentation, of('names').estimatedRows],
      ['Who buys.', null, null],
    )
    assert.deepEqual(of('orders').columns[1].references, { schema: 'public', table: 'customers', column: 'id' })
    assert.ok(!shown.json.includes('ssn'))
    assert.deepEqual((await describeIt(false, asMember)).json, shown.json)
    const full = await describeIt(true)
    assert.ok(full.json.includes('ssn') && full.etag !== shown.etag)
    await putExposure(rooms, call('putExposure'), await at(id), { tables: [columns('id')] })
    assert.notEqual((await describeIt(false)).etag, shown.etag)
  })

  test('only ACTIVE members can be put on the access list', async () => {
    const id = await create({ accessMode: 'EXPLICIT' })
    const [member, invited] = [
      await addMember(rooms, teamId, 'MEMBER'),
      await addMember(rooms, teamId, 'MEMBER', 'INVITED'),
    ]
    const put = async (...accountIds: string[]) => putAccess(rooms, call('putAccess'), await at(id), { accountIds })
    await assert.rejects(put(member.accountId, invited.accountId), { code: 'INVALID_REQUEST' })
    assert.deepEqual(await getAccess(rooms, id), { accountIds: [] })
    assert.deepEqual(await put(member.accountId, member.accountId), { accountIds: [member.accountId] })
    assert.deepEqual(await put(), { accountIds: [] })
  })

  test('an ADMIN who creates an EXPLICIT datasource is added to its access list', async () => {
    const admin = await addMember(rooms, teamId, 'ADMIN')
    const who = sessionCall(admin.accountId, 'createDatasource')
    const { id } = await createDatasource(rooms, who, admin, { ...spec(), accessMode: 'EXPLICIT' })
    assert.equal((await reach(rooms, who, teamId, id as DatasourceId)).id, id)
  })

  test('an ADMIN who makes a datasource EXPLICIT is on its access list, until the list is replaced', async () => {
    const admin = await addMember(rooms, teamId, 'ADMIN')
    const other = await addMember(rooms, teamId, 'ADMIN')
    const id = await create()
    const who = sessionCall(admin.accountId, 'changeDatasource')
    const explicit = { accessMode: 'EXPLICIT' } as const
    await changeDatasource(rooms, who, await at(id, who), explicit)
    assert.deepEqual(await getAccess(rooms, id), { accountIds: [admin.accountId] })
    await assert.rejects(at(id, sessionCall(other.accountId, 'x')), { code: 'NOT_FOUND' })
    // Setting EXPLICIT again adds nobody to the list, not even the caller, who was removed in the meantime.
    const held = await at(id, who)
    await putAccess(rooms, who, held, { accountIds: [other.accountId] })
    await assert.rejects(at(id, who), { code: 'NOT_FOUND' })
    await changeDatasource(rooms, who, held, explicit)
    await changeDatasource(rooms, call('changeDatasource'), await at(id), { ...explicit, name: 'renamed' })
    assert.deepEqual(await getAccess(rooms, id), { accountIds: [other.accountId] })
    // An OWNER changes the mode, but is not added, because an OWNER always reaches the datasource. The old list applies
    // again.
    await changeDatasource(rooms, call('changeDatasource'), await at(id), { accessMode: 'ROLE_BASED' })
    await changeDatasource(rooms, call('changeDatasource'), await at(id), explicit)
    assert.deepEqual(await getAccess(rooms, id), { accountIds: [other.accountId] })
  })

  test('deleting a datasource deletes all its rows except the audit, which OWNERs can still read', async () => {
    const id = await create()
    await introspectDatasource(rooms, call('introspectDatasource'), await at(id))
    await putExposure(rooms, call('putExposure'), await at(id), { tables: [columns('id')] })
    const reached = await at(id)
    await deleteDatasource(rooms, call('deleteDatasource'), reached)
    await assert.rejects(at(id), { code: 'NOT_FOUND' })
    for (const table of ['datasource_secrets', 'catalogs', 'exposures', 'access_entries', 'jobs'] as const) {
      const rows = () =>
        rooms.store.db.selectFrom(table).select('datasource_id').where('datasource_id', '=', id).execute()
      await until(`there are no ${table}`, async () => (await rows()).length === 0)
    }
    const actions = async (who: Membership) =>
      (await listAudit(rooms, sessionCall(who.accountId, 'x'), who, { limit: 500 })).items
        .filter((item) => item.datasourceId === id)
        .map((item) => item.action)
    assert.deepEqual(await actions(owner), [
      'deleteDatasource',
      'putExposure',
      'introspectDatasource',
      'createDatasource',
    ])
    assert.deepEqual(await actions(await addMember(rooms, teamId, 'ADMIN')), [])
  })
})
