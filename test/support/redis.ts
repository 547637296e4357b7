// A real Redis for tests: redis-server of the PATH, on a free port, without files. Null if there is none.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'

export interface TestRedis extends AsyncDisposable {
  readonly url: string
  /** Stops the process with SIGSTOP, and returns the function that continues it. */
  freeze(): () => void
  stop(): Promise<void>
}

export async function startRedis(): Promise<TestRedis | null> {
  const port = await freePort()
  const child = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
    {
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  )
  const ended = once(child, 'close').catch(() => undefined)
  let out = ''
  child.stdout.on('data', (chunk) => (out += String(chunk)))
  let isMissing = false
  child.on('error', () => (isMissing = true))
  while (!out.includes('Ready to accept connections')) {
    await Promise.race([once(child.stdout, 'data'), ended])
    if (isMissing || child.exitCode !== null) {
      if (process.env['TEST_ENGINES'] === 'required') throw new Error('redis-server is required, but cannot be started')
      return null
    }
  }
  const stop = async () => {
    child.kill('SIGKILL')
    await ended
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    freeze() {
      child.kill('SIGSTOP')
      return () => void child.kill('SIGCONT')
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const at = server.address()
  server.close()
  await once(server, 'close')
  return typeof at === 'object' && at !== null ? at.port : 0
}
