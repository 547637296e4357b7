// The MongoDB driver put together: the guard judges, connections do. Nothing here decides anything of its own.
import { setImmediate } from 'node:timers/promises'
import { unseal } from '../confined.ts'
import type { ConnectionSettings, ConnectOptions, Driver, QueryBody } from '../driver.ts'
import { sharedKnown } from '../shared-known.ts'
import { confine } from './guard/confine.ts'
import { logIn } from './session/connect.ts'
import { MongoConnection } from './session/connection.ts'
import { printed } from './guard/print.ts'
import type { MongoQuery } from './query.ts'
import { questionInMongo, typedPath } from './question.ts'
import { redactedJson } from './guard/redact.ts'
import { readBody, rereadBody, type MongoBody } from './guard/read.ts'
import { outlineOf } from './guard/shape.ts'
import type { Known } from './session/run.ts'
import { readSettings, targetOf } from './session/settings.ts'

/** Values in a body that is read, judged and printed without a pause. */
const NODES_AT_ONCE = 1_000

/** The client library is loaded by the first connection. */
export async function createMongoDriver(): Promise<Driver> {
  const knownOf = sharedKnown<Known>(() => ({ sizes: new Map(), lookups: new Map() }))
  return {
    type: 'MONGODB',
    vocabulary: { schema: 'database', table: 'collection', queryLanguage: 'MongoDB filter and aggregation pipeline' },
    settings: readSettings,
    read: readBody,
    typed: typedPath,
    phrase: questionInMongo,
    reread: rereadBody,
    confine: async (body: QueryBody, exposed, limits) => {
      if (!isMongoBody(body)) throw new TypeError('not a body of MongoDB')
      if (body.nodes <= NODES_AT_ONCE) return confine(body, exposed, limits)
      // Reading, judging and printing a large body take some 10 ms each: others are served in between.
      await setImmediate()
      const verdict = confine(body, exposed, limits)
      await setImmediate()
      return verdict
    },
    printed: (query) => printed(unseal<MongoQuery>(query, 'MONGODB')),
    reads: (query) => {
      const { database, reads } = unseal<MongoQuery>(query, 'MONGODB')
      return reads.map(({ name }) => ({ schema: database, table: name }))
    },
    outline: (query) => outlineOf(unseal<MongoQuery>(query, 'MONGODB').shape),
    redacted: redactedJson,
    connect: async (settings: ConnectionSettings, options: ConnectOptions, signal: AbortSignal) => {
      const login = await logIn(targetOf(settings), options.allowPrivateHosts, signal)
      return new MongoConnection(login, () => knownOf(settings))
    },
    [Symbol.asyncDispose]: async () => undefined,
  }
}

/** Another kind's body, or one that nobody read, is a defect of ours. */
function isMongoBody(body: QueryBody): body is MongoBody {
  return 'collection' in body && 'filter' in body && 'pipeline' in body
}
