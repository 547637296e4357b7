// Runs one `vitrine` command in its own process, without the environment of the test run.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { environment } from './environment.ts'
import { CLI } from './program.ts'

export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export async function vitrine(args: readonly string[], env: Record<string, string>): Promise<Ended> {
  const child = spawn(process.execPath, [CLI, ...args], {
    env: environment({ PORT: '0', ...env }),
  })
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code, out, err }
}
