// `npm test`: every test of the project by node's own runner. It starts what it needs, servers of PostgreSQL too, and
// ends it. Arguments narrow it: `npm test -- src/query` runs what lies there.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const asked = process.argv.slice(2).filter((argument) => !argument.startsWith('-'))
const options = process.argv.slice(2).filter((argument) => argument.startsWith('-'))

const patterns =
  asked.length === 0
    ? ['src/**/*.test.ts', 'test/**/*.test.ts', 'demo/**/*.test.ts']
    : asked.map((place) => (place.endsWith('.ts') ? place : `${place.replace(/\/$/, '')}/**/*.test.ts`))

const child = spawn(
  process.execPath,
  [
    '--test',
    // Files beside each other: they wait for their servers more than they compute.
    `--test-concurrency=${Math.max(2, Math.min(4, availableParallelism()))}`,
    `--test-reporter=${process.stdout.isTTY ? 'spec' : 'tap'}`,
    '--test-timeout=300000',
    ...options,
    ...patterns,
  ],
  { cwd: ROOT, stdio: 'inherit' },
)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
const [code] = await once(child, 'exit')
process.exitCode = typeof code === 'number' ? code : 1
