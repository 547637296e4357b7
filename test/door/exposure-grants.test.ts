// Commands can grant a database login exactly what is exposed. For PostgreSQL, they run on a real server. For MongoDB
// and BigQuery, only their texts are checked.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Catalog, CatalogTable } from '../../src/drivers/driver.ts'
import { agreement as inBigQuery } from '../../src/drivers/bigquery/catalog/least-privilege-login.ts'
import { agreement as inMongo } from '../../src/drivers/mongodb/catalog/least-privilege-login.ts'
import { startApp, type Person, type TestApp } from '../support/app.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'

const SQL = `
CREATE TABLE people (id int, "e ""mail" text, note text);
CREATE TABLE secrets (id int);
CREATE SCHEMA other;
CREATE TABLE other.hidden (id int);
INSERT INTO people VALUES (1, 'a', 'n');
`

describe('the grants of an exposure', () => {
  let app: TestApp
  let postgres: TestPostgres
  let database: string
  let owner: Person
  let at: string

  before(async () => {
    postgres = await startPostgres()
    database = await postgres.createDatabase('shop', SQL)
    const all = 'GRANT ALL ON ALL TABLES IN SCHEMA public, other TO "the reader"'
    await postgres.query(
      database,
      `CREATE ROLE "the reader" LOGIN PASSWORD 'pw'; GRANT USAGE ON SCHEMA other TO "the reader"; ${all}`,
    )
    app = await startApp()
    owner = await app.person('Olga')
    const teamId = await app.team(owner)
    const login = { host: postgres.host, port: postgres.port, username: 'the reader', password: 'pw', database }
    at = `/teams/${teamId}/datasources/${await app.datasource(owner, teamId, login)}`
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
    await postgres[Symbol.asyncDispose]()
  })

  test('after the commands for PostgreSQL, the login can read the exposed columns and nothing else', async () => {
    const columns = ['id', 'e "mail']
    await owner.must('PUT', `${at}/exposure`, { tables: [{ schema: 'public', table: 'people', columns }] })
    const grants = await owner.must('GET', `${at}/exposure/grants`)
    assert.equal(grants.kind, 'SQL')
    assert.ok(grants.notes.length > 0)
    await postgres.query(database, grants.text)
    const may = async (table: string, column: string) => {
      const [row] = await postgres.query(
        database,
        `SELECT has_column_privilege('the reader', '${table}', '${column}', 'SELECT'),
                has_any_column_privilege('the reader', '${table}', 'INSERT, UPDATE')`,
      )
      return row
    }
    assert.deepEqual(await may('people', 'id'), ['t', 'f'])
    assert.deepEqual(await may('people', 'e "mail'), ['t', 'f'])
    assert.deepEqual(await may('people', 'note'), ['f', 'f'])
    assert.deepEqual(await may('secrets', 'id'), ['f', 'f'])
    assert.deepEqual(await may('other.hidden', 'id'), ['f', 'f'])
    const answer = await owner.must('POST', `${at}/query`, { sql: 'SELECT * FROM people' })
    assert.deepEqual(answer.rows, [[1, 'a']])
    const { steps } = await owner.must('POST', `${at}/test`)
    const step = steps.find((each: { id: string }) => each.id === 'grants')
    assert.match(step.message, /exposed columns and nothing else/)
  })

  const table = (name: string, columns: readonly string[]): CatalogTable => {
    const plain = { type: 'STRING', nullable: true, primaryKey: false, references: null, description: null }
    const about = { kind: 'table', description: null, estimatedRows: null, warnings: [], detail: null }
    return {
      schema: 'shop',
      table: name,
      ...about,
      columns: columns.map((column) => ({ name: column, ...plain, unexposable: null, detail: null })),
    }
  }
  const catalog = (...tables: readonly CatalogTable[]): Catalog => ({ capturedAt: '', capture: null, tables })
  const full = catalog(table('people', ['id', 'email']), table('secrets', ['id']))
  const of = (exposed: Catalog) => ({ full, exposed, database: 'shop', username: 'reader', config: {} })

  test('the commands for MongoDB name the exposed collections, and say that paths cannot be granted', () => {
    const { kind, text, notes } = inMongo(of(catalog(table('people', ['id']))))
    assert.equal(kind, 'MONGO')
    assert.ok(text.includes('collection: "people"') && !text.includes('secrets'))
    assert.ok(notes.some((note) => note.includes('paths of people')))
    assert.equal(inMongo(of(catalog(table('people', ['id', 'email'])))).notes.length, 1)
  })

  test('the commands for BigQuery name the exposed tables, and say that columns need further steps', () => {
    const { kind, text, notes } = inBigQuery(of(catalog(table('people', ['id']))))
    assert.equal(kind, 'GCLOUD')
    assert.ok(text.includes('`shop`.`people`') && !text.includes('secrets'))
    assert.ok(notes.some((note) => note.includes('columns of shop.people') && note.includes('policy tags')))
  })
})
