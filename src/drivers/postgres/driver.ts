// Composes the PostgreSQL driver from the guard and the connections.
import { agreement } from './catalog/least-privilege-login.ts'
import { unseal } from '../confined.ts'
import type { ConnectionSettings, ConnectOptions, Driver } from '../driver.ts'
import { sharedCache } from '../per-login-cache.ts'
import { sqlBodyReader } from '../sql-body.ts'
import { questionInSql } from '../write-sql-example.ts'
import { sqlRepairs } from '../sql-repairs.ts'
import { openTunnels, throughTunnel } from '../ssh-tunnel.ts'
import { confine } from './guard/confine.ts'
import { logIn } from './session/connect.ts'
import { PostgresConnection } from './session/connection.ts'
import { openParser } from './guard/parser-pool.ts'
import { redactedSql } from './guard/redact.ts'
import { warmUp } from './guard/warm-up.ts'
import type { PostgresQuery } from './confined-query.ts'
import { identifier, typedPath } from './quote.ts'
import type { Known } from './session/run.ts'
import { readSettings, targetOf } from './session/settings.ts'
import { TypeBook } from './session/result-types.ts'

const readBody = sqlBodyReader({ bytesMax: 65_536, params: 'byPlace' })

/** Creates the driver. Disposing of it ends the parser's threads. */
export async function createPostgresDriver(): Promise<Driver> {
  const parser = await openParser()
  const tunnels = openTunnels()
  const knownOf = sharedCache<Known>(() => ({
    types: new TypeBook(),
    sizes: new Map(),
    plain: new Map(),
    implicit: null,
  }))
  return {
    type: 'POSTGRES',
    vocabulary: { schema: 'schema', table: 'table', queryLanguage: 'PostgreSQL SQL' },
    agreement,
    settings: readSettings,
    read: readBody,
    typed: typedPath,
    repairs: sqlRepairs(typedPath),
    phrase: (question) => questionInSql(question, identifier),
    reread: (text, params) => readBody({ sql: text, ...(params !== undefined && { params }) }),
    confine: (body, exposed, limits, signal) => confine(parser, body, exposed, limits, signal),
    printed: (query) => unseal<PostgresQuery>(query, 'POSTGRES').text,
    reads: (query) => unseal<PostgresQuery>(query, 'POSTGRES').reads,
    redacted: redactedSql,
    warm: (signal) => warmUp(parser, signal),
    connect: async (settings: ConnectionSettings, options: ConnectOptions, signal: AbortSignal) => {
      const target = targetOf(settings)
      const { allowPrivateHosts } = options
      return await throughTunnel(tunnels, target, options, signal, async (path) => {
        const login = await logIn({ ...target, path }, allowPrivateHosts, signal)
        return new PostgresConnection(login, () => knownOf(settings))
      })
    },
    async [Symbol.asyncDispose]() {
      await tunnels[Symbol.asyncDispose]()
      await parser[Symbol.asyncDispose]()
    },
  }
}
