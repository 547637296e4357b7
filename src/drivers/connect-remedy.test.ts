import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { connectField, connectRemedy } from './connect-remedy.ts'

test('each failed step of a connection test has a remedy', () => {
  const files = globSync('{postgres,mongodb,bigquery}/catalog/grade*.ts', { cwd: import.meta.dirname })
  assert.ok(files.length >= 3)
  for (const file of files) {
    const text = readFileSync(join(import.meta.dirname, file), 'utf8')
    for (const [line] of text.matchAll(/status: 'FAIL'.*/g)) assert.match(line, /remedy: (?!null)/, `${file}: ${line}`)
  }
})

test('each known reason for a failed connection has a fitting remedy', () => {
  for (const [message, remedy] of [
    ['The server at that host and port is not PostgreSQL.', /another service/],
    ['The connection was refused: nothing listens at that host and port.', /Check the host and port/],
    ['The server did not answer in time.', /Check the host and port/],
    ['There is no such host.', /typing error/],
    ['The server does not have this database.', /Check database/],
    ['The database refuses the user name or password.', /password again/],
    ['The server’s certificate has expired.', /certificate/],
    ['Anything else.', /Check the host and port/],
  ] as const)
    assert.match(connectRemedy(message), remedy, message)
})

test('each reason for a failed connection names the field to correct, or null if no field is wrong', () => {
  for (const [message, field] of [
    ['The server at that host and port is not PostgreSQL.', 'port'],
    ['There is no such host.', 'host'],
    ['The server does not have this database.', 'database'],
    ['The database refuses the user name or password.', 'password'],
    ['The server’s certificate has expired.', 'tlsCa'],
    ['The server offers no TLS.', 'sslMode'],
    ['The database has no free connection.', null],
    ['Anything else.', 'host'],
  ] as const)
    assert.equal(connectField(message), field, message)
})
