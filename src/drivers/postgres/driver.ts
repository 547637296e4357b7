// The PostgreSQL driver put together: the guard judges, connections do. Nothing here decides anything of its own.
import { unseal } from '../confined.ts'
import type { ConnectionSettings, ConnectOptions, Driver } from '../driver.ts'
import { sqlBodyReader } from '../sql-body.ts'
import { questionInSql } from '../sql-question.ts'
import { confine } from './guard/confine.ts'
import { logIn } from './session/connect.ts'
import { PostgresConnection } from './session/connection.ts'
import { openParser } from './guard/parse.ts'
import { redactedSql } from './guard/redact.ts'
import type { PostgresQuery } from './query.ts'
import { identifier } from './quote.ts'
import type { Known } from './session/run.ts'
import { readSettings, targetOf } from './session/settings.ts'
import { TypeBook } from './session/types.ts'

const readBody = sqlBodyReader(65_536)
const KNOWN_MS = 300_000
const KNOWN_MAX = 500

/** Parses a first query, so that the first caller does not wait for it. Dispose ends the parser's workers. */
export async function createPostgresDriver(): Promise<Driver> {
  const parser = await openParser()
  const known = new Map<string, { readonly known: Known; readonly at: number }>()
  return {
    type: 'POSTGRES',
    vocabulary: { schema: 'schema', table: 'table', queryLanguage: 'PostgreSQL SQL' },
    settings: readSettings,
    read: readBody,
    phrase: (question) => questionInSql(question, identifier),
    reread: (text) => readBody({ sql: text }),
    confine: (body, exposed, limits, signal) => confine(parser, body, exposed, limits, signal),
    printed: (query) => unseal<PostgresQuery>(query, 'POSTGRES').text,
    redacted: redactedSql,
    connect: async (settings: ConnectionSettings, options: ConnectOptions, signal: AbortSignal) => {
      const login = await logIn(targetOf(settings), options.allowPrivateHosts, signal)
      const key = JSON.stringify([settings.host, settings.port, settings.database, settings.username])
      return new PostgresConnection(login, () => knownOf(known, key))
    },
    [Symbol.asyncDispose]: () => parser[Symbol.asyncDispose](),
  }
}

/** What connections to one database as one login share: for some minutes, so that a changed type or size is seen. */
function knownOf(all: Map<string, { readonly known: Known; readonly at: number }>, key: string): Known {
  const now = performance.now()
  const entry = all.get(key)
  if (entry !== undefined && now - entry.at < KNOWN_MS) return entry.known
  if (all.size >= KNOWN_MAX) all.clear()
  const known = { types: new TypeBook(), sizes: new Map() }
  all.set(key, { known, at: now })
  return known
}
