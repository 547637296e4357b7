// Sends the attacks and the legitimate queries over HTTP to two datasources. One login is a superuser, the other a
// service account that may read and write everything. A refusal must be JSON {error, code}. A 5xx is allowed only for
// the deadline: 504 in the database, 503 before the query is sent.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startApp, type Person, type TestApp } from '../../support/app.ts'
import { startPostgres, type TestPostgres } from '../../support/postgres.ts'
import { openSession, settingsOf, type TestSession } from '../../support/postgres-session.ts'
import { ATTACKS, EXPOSURE, FIXTURE, LEGIT, STATE, failures, textOf, type Attack, type Received } from './judge.ts'

const LOGINS = [
  { username: 'postgres', isSuperuser: true },
  { username: 'vitrine_svc', isSuperuser: false },
]
const OUTCOMES: Readonly<Record<number, Received['outcome']>> = { 200: 'answered', 400: 'malformed', 403: 'denied' }

for (const { username, isSuperuser } of LOGINS) {
  describe(`attacks and legitimate queries over HTTP, with the login ${username}`, () => {
    let server: TestPostgres
    let app: TestApp
    let owner: Person
    let teamId: string
    let oracle: TestSession
    let at: string
    let key: string
    let stateBefore: (string | null)[][]

    before(async () => {
      server = await startPostgres({ settings: { autovacuum: 'off' } })
      await server.createDatabase('shop', FIXTURE)
      app = await startApp()
      owner = await app.person('Olga')
      const limits = { postgresMaxPlanCost: 1e12, rowCap: 50_000 }
      teamId = await app.team(owner, 'Corpus', { ...limits, queryBudget: { limit: 1_000_000, windowSeconds: 86_400 } })
      const { host, port, password } = server
      const login = { username, password: isSuperuser ? password : 'svc-pw' }
      const spec = { name: 'shop', host, port, database: 'shop', ...login }
      at = `/teams/${teamId}/datasources/${await app.datasource(owner, teamId, spec, EXPOSURE.tables)}`
      key = await app.key(owner)
      oracle = await openSession(settingsOf(server, 'shop', { username: 'vitrine_oracle', secrets: { password: 'oracle-pw' } }))
      stateBefore = await server.query('shop', STATE)
    })
    after(async () => {
      await oracle[Symbol.asyncDispose]()
      await app[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    })

    const post = (sql: string) => app.ask('POST', `${at}/query`, { token: key, body: { sql } })

    /**
     * An attack that may be answered may run for long, so its timeout is short. All other attacks must be refused
     * within seconds, even on a busy machine.
     */
    const timeoutOf = ({ expect }: Attack) => (expect === 'no-leak' ? 1_500 : 60_000)

    test('no attack returns anything hidden', async (t) => {
      let statementTimeoutMs = 0
      for (const attack of ATTACKS.toSorted((one, other) => timeoutOf(one) - timeoutOf(other))) {
        if (statementTimeoutMs !== timeoutOf(attack)) {
          statementTimeoutMs = timeoutOf(attack)
          await owner.must('PATCH', `/teams/${teamId}`, { settings: { statementTimeoutMs } })
        }
        const sql = textOf(attack, { database: 'shop', port: server.port })
        if (sql === undefined) continue
        await t.test(attack.id, async () => {
          const { status, text, json } = await post(sql)
          const isLate = status === 504 || json.code === 'OVERLOADED'
          const outcome = isLate ? 'timeout' : (OUTCOMES[status] ?? 'failed')
          assert.ok(status < 500 || isLate, `${status} ${text}`)
          const received = outcome === 'answered' ? { outcome, text, rowCount: json.rowCount } : { outcome, text }
          assert.deepEqual(failures(attack, sql, received), [])
          if (outcome !== 'answered') assert.match(JSON.stringify([json.error, json.code]), /^\["[^"].*","[A-Z_]+"\]$/)
        })
      }
    })

    test('no attack has changed anything', async () => {
      assert.deepEqual(await server.query('shop', STATE), stateBefore)
    })

    test('every legitimate query gets the answer that a role with column GRANTs gets', async (t) => {
      await owner.must('PATCH', `/teams/${teamId}`, { settings: { statementTimeoutMs: 60_000 } })
      for (const { id, sql, oracle_sql, ordered } of LEGIT) {
        await t.test(id, async () => {
          const { status, text, json } = await post(sql)
          assert.equal(status, 200, text)
          const expected = await oracle.run(oracle_sql ?? sql, { searchPath: ['public'] })
          assert.deepEqual(json.columns, expected.columns)
          const rows = JSON.parse(String(expected.rows)) as unknown[]
          assert.deepEqual(sorted(json.rows, ordered), sorted(rows, ordered))
        })
      }
    })
  })
}

function sorted(rows: readonly unknown[], isOrdered: boolean): string[] {
  const texts = rows.map((row) => JSON.stringify(row))
  return isOrdered ? texts : texts.toSorted()
}
