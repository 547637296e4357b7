// The MongoDB driver put together: the guard judges, connections do. Nothing here decides anything of its own.
import { unseal } from '../confined.ts'
import type { ConnectionSettings, ConnectOptions, Driver, QueryBody } from '../driver.ts'
import { confine } from './guard/confine.ts'
import { logIn } from './session/connect.ts'
import { MongoConnection } from './session/connection.ts'
import { printed } from './guard/print.ts'
import type { MongoQuery } from './query.ts'
import { questionInMongo } from './question.ts'
import { redactedJson } from './guard/redact.ts'
import { readBody, rereadBody, type MongoBody } from './guard/read.ts'
import { outlineOf } from './guard/shape.ts'
import type { Known } from './session/run.ts'
import { readSettings, targetOf } from './session/settings.ts'

const KNOWN_MS = 300_000
const KNOWN_MAX = 500

/** The client library is loaded by the first connection. */
export async function createMongoDriver(): Promise<Driver> {
  const known = new Map<string, { readonly known: Known; readonly at: number }>()
  return {
    type: 'MONGODB',
    vocabulary: { schema: 'database', table: 'collection', queryLanguage: 'MongoDB filter and aggregation pipeline' },
    settings: readSettings,
    read: readBody,
    phrase: questionInMongo,
    reread: rereadBody,
    confine: async (body: QueryBody, exposed, limits) => {
      if (!isMongoBody(body)) throw new TypeError('not a body of MongoDB')
      return confine(body, exposed, limits)
    },
    printed: (query) => printed(unseal<MongoQuery>(query, 'MONGODB')),
    outline: (query) => outlineOf(unseal<MongoQuery>(query, 'MONGODB').shape),
    redacted: redactedJson,
    connect: async (settings: ConnectionSettings, options: ConnectOptions, signal: AbortSignal) => {
      const login = await logIn(targetOf(settings), options.allowPrivateHosts, signal)
      return new MongoConnection(login, () => knownOf(known, settings))
    },
    [Symbol.asyncDispose]: async () => undefined,
  }
}

/** What connections to one database share: for some minutes, so that a changed size is seen. */
function knownOf(all: Map<string, { readonly known: Known; readonly at: number }>, at: ConnectionSettings): Known {
  const key = JSON.stringify([at.host, at.port, at.database, at.username])
  const now = performance.now()
  const entry = all.get(key)
  if (entry !== undefined && now - entry.at < KNOWN_MS) return entry.known
  if (all.size >= KNOWN_MAX) all.clear()
  const known = { sizes: new Map(), lookups: new Map() }
  all.set(key, { known, at: now })
  return known
}

/** Another kind's body, or one that nobody read, is a defect of ours. */
function isMongoBody(body: QueryBody): body is MongoBody {
  return 'collection' in body && 'filter' in body && 'pipeline' in body
}
