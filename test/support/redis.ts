// A real Redis: the redis-server on the PATH, on a free port, without files.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { freePort } from './free-port.ts'
import { NoSuchEngine } from './no-such-engine.ts'

export interface TestRedis extends AsyncDisposable {
  readonly url: string
  /** Stops the process with SIGSTOP. The returned function lets it go on. */
  freeze(): () => void
  stop(): Promise<void>
}

/** Throws NoSuchEngine if there is no redis-server. */
export async function startRedis(): Promise<TestRedis> {
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
  let failure: Error | undefined
  child.on('error', (error) => (failure = error))
  while (!out.includes('Ready to accept connections')) {
    await Promise.race([once(child.stdout, 'data'), ended])
    if (failure !== undefined) throw new NoSuchEngine(`There is no redis-server on the PATH (${failure.message}).`)
    if (child.exitCode !== null) throw new Error(`redis-server ended: ${out}`)
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
