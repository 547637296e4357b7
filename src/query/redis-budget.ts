// Counts the query budgets in Redis, for several processes together. While Redis does not answer, each process counts
// for itself, so queries are still answered and still limited. The URL of Redis may contain a password, so it is never
// logged.
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import { inMemory, type Counter } from './budget.ts'

interface RedisLog {
  info(detail: object, message: string): void
  warn(detail: object, message: string): void
}

const COMMAND_MS = 300
const CONNECT_MS = 2_000
/** The longest pause between two attempts to connect. */
const AGAIN_MS_MAX = 2_000
const UNLIMITED = Number.MAX_SAFE_INTEGER

export interface RedisCounter extends Counter, AsyncDisposable {
  /** False while this process counts for itself. */
  readonly isUp: boolean
}

/** Opens the counter without waiting for Redis, which may start later. */
export async function openRedisCounter(url: string, log: RedisLog, commandMs = COMMAND_MS): Promise<RedisCounter> {
  const { Redis } = await import('ioredis')
  const client = new Redis(url, {
    connectTimeout: CONNECT_MS,
    commandTimeout: commandMs,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    retryStrategy: (times) => Math.min(AGAIN_MS_MAX, times * 100),
  })
  let isGone = false
  const gone = () => {
    if (isGone) return
    isGone = true
    log.warn({}, 'Redis does not answer: each process counts the query budgets for itself')
  }
  client.on('error', gone)
  client.on('close', gone)
  client.on('ready', () => {
    if (isGone) log.info({}, 'Redis answers again: the query budgets are shared')
    isGone = false
  })
  const shared = new RateLimiterRedis({
    storeClient: client,
    keyPrefix: 'vitrine:queries',
    points: UNLIMITED,
    duration: 60,
    rejectIfRedisNotReady: true,
  })
  const own = inMemory()
  async function insured<T>(ask: (counter: Counter) => Promise<T>): Promise<T> {
    if (client.status === 'ready') {
      try {
        return await ask(shared)
      } catch (error) {
        if (error instanceof RateLimiterRes) throw error
        gone()
        // A frozen server keeps its connections open. A new connection shows whether the server still responds.
        if (client.status === 'ready') client.disconnect(true)
      }
    }
    return await ask(own)
  }
  return {
    get isUp() {
      return !isGone && client.status === 'ready'
    },
    consume: (key, points, options) => insured(async (counter) => await counter.consume(key, points, options)),
    get: (key) => insured((counter) => counter.get(key)),
    async [Symbol.asyncDispose]() {
      client.removeAllListeners('close')
      client.disconnect()
    },
  }
}
