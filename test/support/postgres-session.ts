// A session at a test server, which is logged in. Runs SQL as if the guard had printed it.
import assert from 'node:assert/strict'
import { logIn, type Login } from '../../src/drivers/postgres/session/connect.ts'
import { JsonBytes } from '../../src/drivers/json-bytes.ts'
import type { PostgresQuery } from '../../src/drivers/postgres/confined-query.ts'
import { runQuery, type Known, type Running } from '../../src/drivers/postgres/session/run.ts'
import { readSettings, targetOf } from '../../src/drivers/postgres/session/settings.ts'
import { TypeBook } from '../../src/drivers/postgres/session/result-types.ts'
import type { Catalog, Connection, ConnectionSettings, Driver, Limits, Rows } from '../../src/drivers/driver.ts'
import { AppError } from '../../src/errors.ts'
import type { TestPostgres } from './postgres.ts'

export const LIMITS: Limits = { rowCap: 50_000, maxResponseBytes: 8 << 20, timeoutMs: 15_000, maxCost: 1e12 }

export interface TestSession extends AsyncDisposable {
  readonly login: Login
  readonly running: Running
  run(text: string, options?: Partial<PostgresQuery>, limits?: Partial<Limits>): Promise<Rows>
}

export function settingsOf(server: TestPostgres, database: string, more: object = {}): ConnectionSettings {
  return readSettings({
    connectionMode: 'DIRECT',
    host: server.host,
    port: server.port,
    database,
    username: server.superuser,
    sslMode: 'disable',
    secrets: { password: server.password },
    ...more,
  })
}

export function queryOf(text: string, version: number, more: Partial<PostgresQuery> = {}): PostgresQuery {
  const rest = {
    slots: [],
    patterns: [],
    params: [],
    rowCap: 50_000,
    names: new Map(),
    reads: [],
    implicit: { extensions: [], schemas: [], typesUpTo: 0, judged: [], digest: '' },
    bound: null,
    searchPath: [],
    switchedOff: '' as const,
    serverVersion: version,
  }
  return { text, ...rest, ...more }
}

export function emptyKnown(): Known {
  // The checks never expire, so that the requests of a test do not depend on its speed.
  const checked = { at: Infinity, renewedAt: Infinity }
  const plain = { get: () => checked, set: () => new Map(), clear: () => undefined }
  return { types: new TypeBook(), sizes: new Map(), plain, implicit: { digest: '', ...checked } }
}

export async function openSession(settings: ConnectionSettings): Promise<TestSession> {
  const login = await logIn(targetOf(settings), true, AbortSignal.timeout(60_000))
  const running = { session: login.session, known: emptyKnown() }
  const out = new JsonBytes(64)
  return {
    login,
    running,
    run: (text, options, limits) =>
      runQuery(running, queryOf(text, login.session.server.version, options), { ...LIMITS, ...limits }, out),
    [Symbol.asyncDispose]: async () => {
      login.session.wire.close()
      await Promise.resolve()
    },
  }
}

/**
 * Runs a query through the guard and the database. Returns its rows as text, the kind of the refusal, or the code of
 * the error.
 */
export async function answerOf(
  driver: Driver,
  connection: Connection,
  exposed: Catalog,
  sql: string,
  limits: Limits,
): Promise<string> {
  const { signal } = new AbortController()
  const verdict = await driver.confine(driver.read({ sql }), exposed, limits, signal)
  if (verdict.kind !== 'confined') return verdict.kind
  try {
    return String((await connection.run(verdict.query, limits, signal)).rows)
  } catch (error) {
    assert.ok(error instanceof AppError, String(error))
    return error.code
  }
}
