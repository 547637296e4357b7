import { agreement } from './catalog/least-privilege-login.ts'
import { unseal } from '../confined.ts'
import type { ConnectionSettings, ConnectOptions, Driver, QueryBody } from '../driver.ts'
import { sharedCache } from '../per-login-cache.ts'
import { openTunnels, throughTunnel } from '../ssh-tunnel.ts'
import { confineAside } from './guard/confine.ts'
import { logIn } from './session/connect.ts'
import { MongoConnection } from './session/connection.ts'
import type { MongoQuery } from './confined-query.ts'
import { questionInMongo, typedPath } from './write-example.ts'
import { redactedJson } from './guard/redact.ts'
import { readBody, rereadBody, type MongoBody } from './guard/body/read-body.ts'
import { repairs } from './guard/refusals/repairs.ts'
import { openThreads } from './guard/judge-threads.ts'
import type { Known } from './session/run.ts'
import { readSettings, targetOf } from './session/settings.ts'

/** The client library is loaded for the first connection. The first long body starts a guard thread. */
export async function createMongoDriver(): Promise<Driver> {
  const threads = openThreads()
  const tunnels = openTunnels()
  const knownOf = sharedCache<Known>(() => ({ sizes: new Map(), lookups: new Map() }))
  return {
    type: 'MONGODB',
    vocabulary: { schema: 'database', table: 'collection', queryLanguage: 'MongoDB filter and aggregation pipeline' },
    agreement,
    settings: readSettings,
    read: readBody,
    typed: typedPath,
    repairs,
    phrase: questionInMongo,
    reread: rereadBody,
    confine: (body: QueryBody, exposed, limits, signal) => {
      if (!isMongoBody(body)) throw new TypeError('not a body of MongoDB')
      return confineAside(threads, body, exposed, limits, signal)
    },
    printed: (query) => unseal<MongoQuery>(query, 'MONGODB').printed(),
    reads: (query) => {
      const { database, reads } = unseal<MongoQuery>(query, 'MONGODB')
      return reads.map(({ name }) => ({ schema: database, table: name }))
    },
    outline: (query) => unseal<MongoQuery>(query, 'MONGODB').outline(),
    redacted: redactedJson,
    connect: async (settings: ConnectionSettings, options: ConnectOptions, signal: AbortSignal) => {
      const target = targetOf(settings)
      const { allowPrivateHosts } = options
      const [first] = target.hosts
      const behind = { host: first?.host ?? '', port: first?.port ?? 27_017, ssh: target.ssh }
      return await throughTunnel(tunnels, behind, options, signal, async (path) => {
        const login = await logIn(target, allowPrivateHosts, signal, path)
        return new MongoConnection(login, () => knownOf(settings))
      })
    },
    async [Symbol.asyncDispose]() {
      await tunnels[Symbol.asyncDispose]()
      await threads.end()
    },
  }
}

/** False for a body that readBody() did not make. The caller then has a defect. */
function isMongoBody(body: QueryBody): body is MongoBody {
  return 'collection' in body && 'filter' in body && 'pipeline' in body
}
