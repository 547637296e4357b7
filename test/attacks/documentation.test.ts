// Hidden data must not appear in documentation. Every proposal of the attack databases is accepted and published. Then
// the drafts and the published documentation are searched for canaries and hidden names.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { test } from 'node:test'
import { startApp, type Person } from '../support/app.ts'
import { startMongod } from '../support/mongodb.ts'
import { skipWithout } from '../support/no-such-engine.ts'
import { startPostgres } from '../support/postgres.ts'
import { EXPOSED, FULL, load } from './mongodb/fixture.ts'

const read = (name: string): string => readFileSync(new URL(`postgres/${name}`, import.meta.url), 'utf8')

/** Returns the drafts and the published documentation as JSON. */
async function documentEverything(
  owner: Person,
  at: string,
): Promise<{ readonly draft: string; readonly described: string }> {
  for (const path of ['profile', 'documentation/generate']) {
    const { jobId } = await owner.must('POST', `${at}/${path}`)
    let job = await owner.must('GET', `${at}/jobs/${jobId}`)
    for (; job.state === 'RUNNING'; job = await owner.must('GET', `${at}/jobs/${jobId}`)) await setTimeout(20)
    assert.equal(job.state, 'DONE', JSON.stringify(job))
  }
  const accepted = (proposal: object | null) => proposal && { ...proposal, status: 'ACCEPTED' }
  const draft = await owner.must('GET', `${at}/documentation`)
  for (const { schema, table, summary, examples, statements, columns } of draft.tables) {
    const put = `${at}/documentation/${encodeURIComponent(schema)}/${encodeURIComponent(table)}`
    const { warnings } = await owner.must('PUT', put, {
      summary: accepted(summary),
      examples: accepted(examples),
      statements: statements.map(accepted),
      columns: Object.fromEntries(Object.entries<object>(columns).map(([name, proposal]) => [name, accepted(proposal)])),
    })
    assert.deepEqual(warnings, [], 'all proposals may be shown')
  }
  await owner.must('POST', `${at}/documentation/publish`)
  const { tables } = await owner.must('GET', `${at}/schema`)
  const published = tables.map((table: { readonly documentation: unknown }) => table.documentation)
  assert.equal(published.filter((documentation: unknown) => documentation !== null).length, draft.tables.length)
  return { draft: JSON.stringify(draft), described: JSON.stringify(published) }
}

test('for PostgreSQL, neither the drafts nor the published documentation contains a canary', async () => {
  await using server = await startPostgres({ settings: { autovacuum: 'off' } })
  const database = await server.createDatabase('shop', `${read('fixture.sql')}; ANALYZE;`)
  await using app = await startApp()
  const owner = await app.person('Olga')
  const teamId = await app.team(owner)
  const { host, port, superuser: username, password } = server
  const { tables } = JSON.parse(read('exposure.json'))
  const id = await app.datasource(owner, teamId, { host, port, database, username, password }, tables)
  const texts = await documentEverything(owner, `/teams/${teamId}/datasources/${id}`)
  for (const text of Object.values(texts)) {
    assert.match(text, /country/)
    assert.doesNotMatch(text, /CANARY|\b9876[5-8]\d{4}\b|ssn|password_hash|secret_tier|credit_limit/)
  }
})

test('for MongoDB, neither the drafts nor the published documentation contains a canary', { skip: await skipWithout(startMongod) }, async () => {
  await using server = await startMongod()
  await load(server.client.db(FULL), server.client.db('bare'))
  await using app = await startApp()
  const owner = await app.person('Olga')
  const teamId = await app.team(owner)
  const place = { type: 'MONGODB', host: server.host, port: server.port, database: FULL }
  const id = await app.datasource(owner, teamId, place)
  const at = `/teams/${teamId}/datasources/${id}`
  const known = await owner.must('GET', `${at}/schema?full=1`)
  const tables = Object.entries(EXPOSED).map(([table, paths]) => {
    const found = known.tables.find((entry: { readonly table: string }) => entry.table === table)
    const names = new Set(found.columns.map((column: { readonly name: string }) => column.name))
    return { schema: FULL, table, columns: paths.filter((path) => names.has(path)) }
  })
  await owner.must('PUT', `${at}/exposure`, { tables })
  const texts = await documentEverything(owner, at)
  for (const text of Object.values(texts)) {
    assert.match(text, /pipeline/)
    assert.doesNotMatch(text, /SECRET|\b9000\d\d\b|ssn|number|street|vault|people_all/)
  }
})
