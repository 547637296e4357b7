// Runs the tests with Node's own runner. The tests start the servers that they need, and end them.
//   npm test                  the tests to run while you work: every room, the door, the attacks; the store on SQLite
//   npm run test:full         what `npm test` leaves out: the heavy files, and the store on PostgreSQL
//   npm test -- src/query     all tests of a folder or file, on both stores
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../', import.meta.url))

/** These files start many processes, compute for long, or wait for timeouts. */
const HEAVY = [
  'test/process/*.test.ts',
  'test/attacks/*/fuzz.test.ts',
  'test/attacks/bigquery/mutants.test.ts',
  'test/attacks/mongodb/heavy.test.ts',
  'test/drivers/bigquery-wire.test.ts',
  'test/drivers/postgres-versions.test.ts',
  'test/support/no-such-engine.test.ts',
]

interface Run {
  readonly files: readonly string[]
  /** The store that the tests use; undefined: both. */
  readonly stores?: 'sqlite' | 'postgres'
}

const given = process.argv.slice(2)
const options = given.filter((argument) => argument.startsWith('-') && argument !== '--full')
const places = given.filter((argument) => !argument.startsWith('-'))
const run = given.includes('--full') ? full() : places.length > 0 ? narrow() : quick()
if (run.files.length === 0) throw new Error(`there is no test in ${places.join(', ')}`)

function quick(): Run {
  const heavy = new Set(filesOf(HEAVY))
  return { files: everyFile().filter((file) => !heavy.has(file)), stores: 'sqlite' }
}

function full(): Run {
  const onStores = everyFile().filter((file) => readFileSync(join(ROOT, file), 'utf8').includes(' of DIALECTS)'))
  return { files: [...new Set([...filesOf(HEAVY), ...onStores])], stores: 'postgres' }
}

function narrow(): Run {
  const patterns = places.map((place) => (place.endsWith('.ts') ? place : `${place.replace(/\/$/, '')}/**/*.test.ts`))
  return { files: filesOf(patterns) }
}

function everyFile(): string[] {
  return filesOf(['src/**/*.test.ts', 'test/**/*.test.ts', 'demo/**/*.test.ts'])
}

function filesOf(patterns: readonly string[]): string[] {
  return globSync(patterns, { cwd: ROOT }).sort()
}

const env: NodeJS.ProcessEnv = { ...process.env }
if (run.stores === undefined) delete env['TEST_STORES']
else env['TEST_STORES'] = run.stores
const child = spawn(
  process.execPath,
  [
    '--test',
    // Test files wait for servers more than they compute.
    `--test-concurrency=${Math.max(2, Math.min(4, availableParallelism()))}`,
    `--test-reporter=${process.stdout.isTTY ? 'spec' : 'tap'}`,
    '--test-timeout=300000',
    ...options,
    ...run.files,
  ],
  { cwd: ROOT, stdio: 'inherit', env },
)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
const [code] = await once(child, 'exit')
process.exitCode = typeof code === 'number' ? code : 1
