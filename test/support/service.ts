// Starts the service as another process, for tests that signal or kill it: `await using app = await
// startService(folder)`.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { TestApp } from './app.ts'
import { environment } from './environment.ts'
import { MAIN } from './program.ts'

export interface Service extends TestApp {
  readonly pid: number
  /** Resolves to the exit code. */
  readonly ended: Promise<unknown>
  /** What was printed so far: the log and the address. */
  output(): string
  signal(name: NodeJS.Signals): void
}

/** Waits until the service listens on a free port. Disposing kills it and removes the data folder. */
export async function startService(dataDir: string, env: Record<string, string> = {}): Promise<Service> {
  const child = spawn(process.execPath, [MAIN], {
    env: environment({ PORT: '0', VITRINE_DATA_DIR: dataDir, LOG_LEVEL: 'error', ...env }),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let out = ''
  child.stdout.on('data', (chunk) => (out += String(chunk)))
  const ended = once(child, 'close').then(([code]) => code)
  while (!/listens at \S+\n/.test(out)) {
    assert.equal(child.exitCode, null)
    await Promise.race([once(child.stdout, 'data'), ended])
  }
  const app = new TestApp(/listens at (\S+)/.exec(out)?.[1] ?? '', dataDir, {
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await ended
    },
  })
  const signal = (name: NodeJS.Signals) => void child.kill(name)
  return Object.assign(app, { pid: child.pid ?? 0, ended, signal, output: () => out })
}
