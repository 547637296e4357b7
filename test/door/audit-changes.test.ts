// Every operation that changes something must leave an audit row with its target and the changed fields. A secret that
// was received or created must not be in the audit, its exports or the log.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { AuditItem } from '../../src/contract/audit-schemas.ts'
import { SESSION_ROUTES } from '../../src/contract/signed-in-routes.ts'
import { readDetail } from '../../src/audit/row-detail.ts'
import { asId, newId, type AccountId, type GrantId } from '../../src/ids.ts'
import { openStore, type Store } from '../../src/store/open.ts'
import type { Person } from '../support/app.ts'
import { makeCertificates, type Certificates } from '../support/certificates.ts'
import { openShop, type Shop } from '../support/shop.ts'
import { storeSource, type StoreSource } from '../support/stores.ts'

type RouteName = keyof typeof SESSION_ROUTES

/** These operations change nothing, although their method is not GET. */
const READS: ReadonlySet<string> = new Set<RouteName>(['checkQuery', 'exposureFromRefusal', 'tryConnection'])

/** The row that an operation must record: the kind and name of its target, and the changed fields. */
interface Expected {
  readonly kind: string
  readonly name: string
  readonly fields: readonly string[]
}

describe('the audit of changes', () => {
  let source: StoreSource
  let store: Store
  let shop: Shop
  let pem: Certificates
  const log: string[] = []
  const secrets = new Set<string>()
  const seen = new Set<string>()
  before(async () => {
    source = await storeSource('postgres')
    const config = await source.config()
    const env = { DATABASE_URL: config.databaseUrl ?? '', VITRINE_SECRET_KEY: randomBytes(32).toString('base64') }
    shop = await openShop({ env, logged: (line) => void log.push(line) })
    store = await openStore(config)
    pem = await makeCertificates()
    secrets.add(shop.key)
  })
  after(async () => {
    await pem[Symbol.asyncDispose]()
    await store[Symbol.asyncDispose]()
    await shop[Symbol.asyncDispose]()
    await source[Symbol.asyncDispose]()
  })

  /** Makes a secret, and remembers it for the search at the end. */
  const canary = (): string => {
    const secret = `CANARY${randomBytes(12).toString('hex')}`
    secrets.add(secret)
    return secret
  }

  /** Runs the operation, and compares its audit row. Returns the response and the recorded changes. */
  async function changes(
    action: RouteName,
    who: Person,
    path: string,
    body: unknown,
    { kind, name, fields }: Expected,
  ) {
    const answer = await who.must(SESSION_ROUTES[action].method, path, body)
    // Audit rows are written in batches. This read writes the batch first.
    await shop.owner.ask('GET', `/teams/${shop.teamId}/audit?limit=1`)
    const row = await store.db
      .selectFrom('audit')
      .selectAll()
      .where('action', '=', action)
      .where('outcome', '=', 'ANSWERED')
      .orderBy('at', 'desc')
      .orderBy('id', 'desc')
      .executeTakeFirstOrThrow(() => new Error(`no row of ${action}`))
    const { by, target, changes = {} } = readDetail(row.detail)
    assert.deepEqual([action, target?.kind, target?.name], [action, kind, name])
    assert.ok(target !== undefined && target.id !== '' && by !== undefined && by !== '', action)
    assert.deepEqual([action, ...Object.keys(changes).sort()], [action, ...[...fields].sort()])
    seen.add(action)
    return { answer, changes }
  }

  const ended = async (at: string, jobId: string) => {
    while (['QUEUED', 'RUNNING'].includes((await shop.owner.must('GET', `${at}/jobs/${jobId}`)).state))
      await setTimeout(20)
  }

  test('the audit has a row for each change of accounts and keys', async () => {
    const ada = await shop.app.person('Ada')
    const account = { kind: 'account', name: 'Ada L.' }
    await changes('changeAccount', ada, '/users/me', { name: 'Ada L.' }, { ...account, fields: ['name'] })
    const order = { name: 'CI', scopes: ['data:read'] }
    const key = { kind: 'key', name: 'CI' }
    const all = ['scopes', 'teamIds', 'datasourceIds', 'expiresAt']
    const made = await changes('createKey', ada, '/users/me/keys', order, { ...key, fields: all })
    assert.deepEqual(made.changes, {
      scopes: { added: ['data:read'], removed: [] },
      teamIds: { from: null, to: 'all' },
      datasourceIds: { from: null, to: 'all' },
      expiresAt: { from: null, to: 'never' },
    })
    const at = `/users/me/keys/${made.answer.id}`
    const moved = { name: 'CI', expiresAt: '2999-01-01T00:00:00Z' }
    await changes('changeKey', ada, at, moved, { ...key, fields: ['expiresAt'] })
    const fields = ['replacedBy', 'expiresAt']
    const graced = await changes('rotateKey', ada, `${at}/rotate`, { graceSeconds: 60 }, { ...key, fields })
    assert.deepEqual(graced.changes['replacedBy'], { from: null, to: graced.answer.id })
    for (const { key: value } of [made.answer, graced.answer]) secrets.add(value)
    const next = `/users/me/keys/${graced.answer.id}`
    await changes('revokeKey', ada, next, undefined, { ...key, fields: ['revokedAt'] })
    await changes('deleteAccount', ada, '/users/me', { confirm: ada.email }, { ...account, fields: ['name'] })
  })

  test('the audit has a row for each change of the grants of agents', async () => {
    const { owner, teamId } = shop
    const id = newId<GrantId>()
    // The consent page stores a grant like this one.
    await store.write((tx) =>
      tx
        .insertInto('connector_grants')
        .values({
          id,
          account_id: asId<AccountId>(owner.id),
          client_id: 'client',
          client_name: 'Agent',
          client_host: 'agent.example',
          scopes: JSON.stringify(['data:schema', 'data:read']),
          team_ids: null,
          datasource_ids: null,
          ended_team_ids: '[]',
          created_at: new Date().toISOString(),
          expires_at: null,
          last_used_at: null,
          revoked_at: null,
        })
        .execute(),
    )
    const grant = (...fields: string[]) => ({ kind: 'grant', name: 'Agent', fields })
    const at = `/users/me/grants/${id}`
    const ended = grant('endedForTeams')
    await changes('endTeamForGrant', owner, `/teams/${teamId}/grants/${id}`, undefined, ended)
    await changes('narrowGrant', owner, at, { scopes: ['data:schema'] }, grant('scopes'))
    await changes('endGrant', owner, at, undefined, grant('revokedAt'))
  })

  test('the audit has a row for each change of teams and their members', async () => {
    const { owner } = shop
    const team = (name: string, fields: readonly string[]) => ({ kind: 'team', name, fields })
    const made = await changes('createTeam', owner, '/teams', { name: 'New' }, team('New', ['name', 'slug']))
    const path = `/teams/${made.answer.id}`
    const settings = { rowCap: 7, queryBudget: { limit: 9, windowSeconds: 60 }, auditRedactLiterals: true }
    const names = ['name', 'settings.rowCap', 'settings.queryBudget.limit', 'settings.auditRedactLiterals']
    const changed = await changes('changeTeam', owner, path, { name: 'Renamed', settings }, team('Renamed', names))
    assert.deepEqual(changed.changes['settings.rowCap'], { from: 1_000, to: 7 })
    assert.deepEqual(changed.changes['name'], { from: 'New', to: 'Renamed' })

    const [mia, max] = [await shop.app.person('Mia'), await shop.app.person('Max')]
    const invite = async (email: string) => {
      const expected = { kind: 'invitation', name: email, fields: ['role', 'expiresAt'] }
      const { answer } = await changes('addMember', owner, `${path}/members`, { email, role: 'MEMBER' }, expected)
      secrets.add(answer.inviteToken)
      return answer
    }
    for (const person of [mia, max]) {
      const { inviteToken } = await invite(person.email)
      const accepted = { kind: 'invitation', name: person.email, fields: ['role', 'usedAt'] }
      await changes('acceptInvitation', person, `/invitations/${inviteToken}/accept`, undefined, accepted)
      const opened = { kind: 'member', name: person.email, fields: ['status'] }
      await changes('openTeam', person, `${path}/open`, undefined, opened)
    }
    const { invitationId } = await invite('eve@example.test')
    const gone = { kind: 'invitation', name: 'eve@example.test', fields: ['role', 'expiresAt'] }
    await changes('removeInvitation', owner, `${path}/invitations/${invitationId}`, undefined, gone)

    const raised = { kind: 'member', name: mia.email, fields: ['role'] }
    const role = await changes('changeMember', owner, `${path}/members/${mia.id}`, { role: 'ADMIN' }, raised)
    assert.deepEqual(role.changes, { role: { from: 'MEMBER', to: 'ADMIN' } })
    secrets.add(await shop.app.key(mia, { name: 'of Mia' }))
    secrets.add(await shop.app.key(mia, { name: 'another' }))
    const [{ id: keyId }] = await mia.must('GET', '/users/me/keys')
    const key = { kind: 'key', name: 'of Mia', fields: ['endedForTeams'] }
    await changes('endTeamForKey', owner, `${path}/keys/${keyId}`, undefined, key)
    const out = await changes('removeMember', owner, `${path}/members/${mia.id}`, undefined, {
      kind: 'member',
      name: mia.email,
      fields: ['role', 'status', 'keys'],
    })
    assert.deepEqual(out.changes['keys'], { added: [], removed: ['another'] })
    const left = { kind: 'member', name: max.email, fields: ['role', 'status'] }
    await changes('leaveTeam', max, `${path}/leave`, undefined, left)
    const { slug } = await owner.must('GET', path)
    await changes('deleteTeam', owner, path, { confirm: slug }, team('Renamed', ['name', 'slug']))
  })

  test('the audit has a row for each change of a datasource and its exposure, jobs, documentation and access', async () => {
    const { owner, spec, teamId } = shop
    const path = `/teams/${teamId}/datasources`
    const connected = { kind: 'datasource', name: 'second' }
    const password = 'password' in spec ? String(spec.password) : ''
    secrets.add(password)
    const order = { ...spec, name: 'second', type: 'POSTGRES', connectionMode: 'DIRECT', sslMode: 'disable' }
    const shown = ['name', 'type', 'status', 'connectionMode', 'host', 'port', 'database', 'username', 'sslMode']
    const fields = [...shown, 'config.reintrospectHours', 'accessMode', 'minRole', 'password']
    const made = await changes('createDatasource', owner, path, order, { ...connected, fields })
    assert.deepEqual(made.changes['password'], { from: 'not set', to: 'set' })
    const at = `${path}/${made.answer.id}`
    const change = (body: object, ...changed: string[]) =>
      changes('changeDatasource', owner, at, body, { ...connected, fields: changed })
    await change({ minRole: 'MEMBER' }, 'minRole')
    const wrong = await change({ password: canary() }, 'password')
    assert.deepEqual(wrong.changes, { password: { from: 'set', to: 'set' } })
    await changes('testDatasource', owner, `${at}/test`, undefined, { ...connected, fields: ['status', 'lastError'] })
    await change({ password, config: { reintrospectHours: 5 } }, 'password', 'status', 'config.reintrospectHours')
    await changes('testDatasource', owner, `${at}/test`, undefined, { ...connected, fields: ['status'] })
    const introspected = await changes('introspectDatasource', owner, `${at}/introspect`, undefined, {
      ...connected,
      fields: ['catalogVersion', 'tables'],
    })
    assert.deepEqual(introspected.changes['tables'], {
      added: ['public.customers', 'public.orders', 'public.payroll', 'public.recent'],
      removed: [],
    })
    const status = { ...connected, fields: ['status'] }
    await changes('disableDatasource', owner, `${at}/disable`, undefined, status)
    await changes('enableDatasource', owner, `${at}/enable`, undefined, status)

    const tables = [{ schema: 'public', table: 'customers', columns: ['id', 'name'] }]
    const exposure = { kind: 'exposure', name: 'second', fields: ['version', 'tables', 'columns'] }
    await changes('putExposure', owner, `${at}/exposure`, { tables }, exposure)
    const narrower = [{ schema: 'public', table: 'customers', columns: ['id', 'country'] }]
    const swapped = await changes(
      'putExposure',
      owner,
      `${at}/exposure`,
      { tables: narrower },
      {
        ...exposure,
        fields: ['version', 'columns'],
      },
    )
    assert.deepEqual(swapped.changes, {
      version: { from: 1, to: 2 },
      columns: { added: ['public.customers.country'], removed: ['public.customers.name'] },
    })
    for (const [action, rest, body, name] of [
      ['previewExposure', '/exposure/preview', { tables, days: 1 }, 'preview'],
      ['profileDatasource', '/profile', {}, 'profile'],
      ['generateDocumentation', '/documentation/generate', {}, 'document'],
    ] as const) {
      const { answer } = await changes(action, owner, at + rest, body, { kind: 'job', name, fields: [] })
      await ended(at, answer.jobId)
      // The job has already ended, so no field changes.
      await changes('cancelJob', owner, `${at}/jobs/${answer.jobId}`, undefined, { kind: 'job', name, fields: [] })
    }
    await shop.app.ask('POST', `${at}/query`, { token: owner.jwt, body: { sql: 'SELECT name FROM customers' } })
    const [refused] = (await owner.must('GET', '/users/me/activity?blocked=column&limit=1')).items
    const ask = { auditId: refused.id, why: 'Needed.' }
    const request = { kind: 'request', name: `column ${refused.blocked.name}` }
    const asked = await changes('requestExposure', owner, `${at}/requests`, ask, {
      ...request,
      fields: ['why', 'auditId'],
    })
    const close = `/teams/${teamId}/requests/${asked.answer.id}/close`
    await changes('closeRequest', owner, close, { note: 'Done.' }, { ...request, fields: ['state', 'note'] })
    const hook = { name: 'pager', url: `http://127.0.0.1:1/${canary()}`, events: ['drift'] }
    const webhook = { kind: 'webhook', name: 'pager' }
    const shownOfHook = ['name', 'host', 'format', 'events', 'refusals', 'enabled']
    const hooks = `/teams/${teamId}/webhooks`
    const fresh = await changes('createWebhook', owner, hooks, hook, { ...webhook, fields: [...shownOfHook, 'secret'] })
    const oneHook = `${hooks}/${fresh.answer.id}`
    await changes('changeWebhook', owner, oneHook, { enabled: false }, { ...webhook, fields: ['enabled'] })
    await changes('testWebhook', owner, `${oneHook}/test`, undefined, { ...webhook, fields: ['delivered', 'error'] })
    await changes('deleteWebhook', owner, oneHook, undefined, { ...webhook, fields: [...shownOfHook, 'secret'] })
    const text = canary()
    const documentation = { summary: { text }, columns: { id: { personal: true } } }
    const table = { kind: 'documentation', name: 'public.customers' }
    const fieldsOfTexts = ['version', 'texts', 'personal']
    const saved = await changes('putDocumentation', owner, `${at}/documentation/public/customers`, documentation, {
      ...table,
      fields: fieldsOfTexts,
    })
    assert.deepEqual(saved.changes['personal'], { added: ['id'], removed: [] })
    const published = { kind: 'documentation', name: 'second', fields: ['published', 'texts'] }
    const out = await changes('publishDocumentation', owner, `${at}/documentation/publish`, undefined, published)
    assert.deepEqual(out.changes['texts'], { added: ['public.customers summary'], removed: [] })
    const proposed = { columns: { id: { text: canary(), status: 'PROPOSED' } } }
    await owner.must('PUT', `${at}/documentation/public/customers`, proposed)
    const accepted = { kind: 'documentation', name: 'second', fields: ['version', 'texts'] }
    const taken = await changes('acceptDocumentation', owner, `${at}/documentation/accept`, {}, accepted)
    assert.ok(JSON.stringify(taken.changes['texts']).includes('public.customers columns.id'))
    const access = { kind: 'access', name: 'second', fields: ['accountIds', 'emails'] }
    const listed = await changes('putAccess', owner, `${at}/access`, { accountIds: [owner.id] }, access)
    assert.deepEqual(listed.changes['emails'], { added: [owner.email], removed: [] })
    const removed = { ...connected, fields }
    await changes('deleteDatasource', owner, at, undefined, removed)
  })

  test('the audit tests cover every operation that changes something', () => {
    const changing = Object.entries(SESSION_ROUTES).filter(([name, { method }]) => method !== 'GET' && !READS.has(name))
    assert.deepEqual([...seen].sort(), changing.map(([name]) => name).sort())
  })

  test('no accepted or refused secret appears in an audit row, an export or the log', async () => {
    const { owner, teamId, at } = shop
    const path = `/teams/${teamId}/datasources`
    const base = { name: 'x', sslMode: 'verify-full' }
    const address = { host: '127.0.0.1', port: 1, database: 'd', username: 'u' }
    const postgres = { ...base, type: 'POSTGRES', connectionMode: 'DIRECT', ...address, password: canary() }
    const { pem: files } = pem
    const key = String(files['ann.key'])
    const line = key.split('\n')[2] ?? ''
    assert.ok(line.length > 20)
    secrets.add(line)
    const tls = { tlsCa: files['ca.crt'], tlsCertificate: files['ann.crt'], tlsKey: key }
    const uri = `postgres://u:${canary()}@127.0.0.1:1/d`
    const mongo = { ...base, type: 'MONGODB', connectionMode: 'URI', sslMode: 'disable' }
    const google = { ...base, sslMode: undefined, type: 'BIGQUERY', connectionMode: 'SERVICE_ACCOUNT', database: 'p' }
    const trials: string[] = []
    for (const [body, status] of [
      [{ ...postgres, ...tls }, 201],
      [{ ...postgres, tlsKey: canary(), tlsCertificate: canary(), tlsCa: canary() }, 400],
      [{ ...postgres, sshPrivateKey: canary(), sshPassphrase: canary() }, 400],
      [{ ...postgres, password: [canary()] }, 400],
      [{ ...postgres, port: canary() }, 400],
      [{ ...base, type: 'POSTGRES', connectionMode: 'URI', uri }, 201],
      [{ ...base, type: 'POSTGRES', connectionMode: 'URI', uri: `${uri}?sslkey=${canary()}` }, 400],
      [{ ...base, type: 'POSTGRES', connectionMode: 'URI', uri: `postgres://u:${canary()}@[/d` }, 400],
      [{ ...mongo, uri: `mongodb://u:${canary()}@127.0.0.1:1/d` }, 201],
      [{ ...mongo, uri: `mongodb://u:${canary()}@127.0.0.1:1/d?x=${canary()}` }, 400],
      [{ ...google, serviceAccountKey: JSON.stringify({ private_key: canary() }) }, 400],
      [{ ...google, serviceAccountKey: canary() }, 400],
    ] as const) {
      const answer = await owner.ask('POST', path, body)
      assert.equal(answer.status, status, answer.text)
      const trial = await owner.ask('POST', `${path}/test`, body)
      assert.equal(trial.status, status === 201 ? 200 : 400, trial.text)
      trials.push(trial.text)
      if (status !== 201) continue
      const made = `${path}/${answer.json.id}`
      await owner.must('POST', `${made}/test`)
      await owner.ask('POST', `${made}/introspect`)
      await owner.ask('POST', `${made}/query`, { sql: 'SELECT 1' })
      for (const change of [{ password: canary() }, { uri: canary() }, { tlsKey: canary() }, { port: 2 }])
        await owner.ask('PATCH', made, change)
    }
    await owner.ask('POST', `/invitations/${canary()}/accept`)
    await owner.ask('POST', `${at}/query`, { sql: 'SELECT 1', password: 'x' })

    const rows = JSON.stringify(await store.db.selectFrom('audit').selectAll().execute())
    const list = await owner.must('GET', `/teams/${teamId}/audit?limit=500`)
    const exports = await Promise.all(
      ['csv', 'jsonl'].map((format) => owner.ask('GET', `/teams/${teamId}/audit/export?format=${format}`)),
    )
    const reports = JSON.stringify(await store.db.selectFrom('test_reports').selectAll().execute())
    const texts = [
      trials.join(''),
      reports,
      rows,
      JSON.stringify(list),
      ...exports.map(({ text }) => text),
      log.join(''),
    ]
    assert.ok(secrets.size > 20 && texts.every((text) => text.length > 100))
    for (const secret of secrets) {
      assert.ok(secret.length > 8)
      assert.deepEqual(
        texts.map((text) => text.includes(secret)),
        texts.map(() => false),
        secret,
      )
    }
  })

  test('if literals are redacted, an error text is stored only if it quotes no literal', async () => {
    const { owner, teamId, at } = shop
    const settings = (auditRedactLiterals: boolean) =>
      owner.must('PATCH', `/teams/${teamId}`, { settings: { auditRedactLiterals } })
    await settings(true)
    for (const [sql, code, kept] of [
      ["SELECT nope FROM customers WHERE name = 'Zebra77'", 'QUERY_DENIED', /nope/],
      ["SELECT 'Zebra77'::int", 'QUERY_FAILED', undefined],
      ["SELECT 'Zebra77", 'INVALID_QUERY', undefined],
      ['SELECT "Zebra77" FROM customers', 'QUERY_DENIED', /Zebra77/],
      ["SELECT name FROM customers WHERE name ~ 'Zebra77' AND pg_sleep(1) IS NULL", 'QUERY_DENIED', /pg_sleep/],
    ] as const) {
      const answer = await shop.query(sql)
      assert.equal(answer.json.code, code, answer.text)
      for (const path of [`${at}/check`, null]) {
        if (path !== null) await owner.ask('POST', path, { sql })
        const [row] = (await owner.must('GET', `/teams/${teamId}/audit?limit=1`)).items
        if (kept === undefined) assert.deepEqual([row.error, row.hint], [undefined, undefined], sql)
        else assert.match(row.error, kept)
        if (kept?.source !== 'Zebra77') assert.ok(!JSON.stringify(row).includes('Zebra'), sql)
      }
    }
    await settings(false)
  })

  test('an audit row is the same by its id and in the list, is hidden from callers whose list lacks it, and is no formula in a CSV export', async () => {
    const { owner, teamId, at } = shop
    await shop.query('SELECT email FROM customers')
    const path = `/teams/${teamId}/audit`
    const { items } = await owner.must('GET', `${path}?limit=50`)
    for (const item of items) assert.deepEqual(await owner.must('GET', `${path}/${item.id}`), AuditItem.parse(item))
    const [refused] = items
    assert.match(refused.error, /email/)
    assert.ok(refused.hint.length > 0 && refused.position === 7)
    assert.deepEqual([refused.keyName, refused.actor.name], ['test', 'Olga'])
    await shop.query('SELECT count(*) FROM customers JOIN orders ON customers.id = customer_id')
    const [answered] = (await owner.must('GET', `${path}?limit=1`)).items
    assert.deepEqual(answered.tables, [
      { schema: 'public', table: 'customers' },
      { schema: 'public', table: 'orders' },
    ])

    await owner.must('PATCH', at, { name: '=HYPERLINK("x")' })
    const { text } = await owner.ask('GET', `${path}/export?action=changeDatasource`)
    assert.match(text, /^"id","at","accountId","accountName",.*"targetName","changes",/)
    assert.ok(text.includes(`,"'=HYPERLINK(""x"")",`) && !/(?:^|,)"=/m.test(text))

    const [admin, other] = [await shop.app.person('Ada'), await shop.app.person('Otto')]
    await shop.app.join(owner, teamId, admin, 'ADMIN')
    await owner.must('PATCH', at, { accessMode: 'EXPLICIT' })
    const otherTeam = await shop.app.team(other, 'Other')
    const no = { ...(await owner.ask('GET', `${path}/none`)).json }
    assert.equal(no.code, 'NOT_FOUND')
    for (const [who, team] of [
      [admin, teamId],
      [other, otherTeam],
    ] as const) {
      const answer = await who.ask('GET', `/teams/${team}/audit/${answered.id}`)
      assert.deepEqual([answer.status, answer.json], [404, no])
    }
    await owner.must('PATCH', at, { accessMode: 'ROLE_BASED' })
    assert.equal((await admin.must('GET', `${path}/${answered.id}`)).id, answered.id)
  })
})
