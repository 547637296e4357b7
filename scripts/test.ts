// Runs the tests with Node's own runner. The tests start the servers that they need, and end them.
//   npm test                  the tests to run while you work: every room, the door, the attacks; the store on SQLite
//   npm run test:full         what `npm test` leaves out: the heavy files, and the store on PostgreSQL
//   npm test -- src/query     all tests of a folder or file, on both stores
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../', import.meta.url))

/** These files start many processes or databases, hash many passwords, compute for long, or wait for timeouts. */
const HEAVY = [
  'src/sign-in/mailed.test.ts',
  'src/sign-in/two-factor.test.ts',
  'test/process/*.test.ts',
  'test/attacks/documentation.test.ts',
  'test/attacks/profiles.test.ts',
  'test/attacks/*/fuzz.test.ts',
  'test/attacks/*/gr*.test.ts',
  'test/attacks/bigquery/mutants.test.ts',
  'test/attacks/*/connector.test.ts',
  'test/attacks/mongodb/heavy.test.ts',
  'test/attacks/postgres/existence.test.ts',
  'test/attacks/postgres/http.test.ts',
  'test/attacks/postgres/implicit.test.ts',
  'test/attacks/postgres/schema-change.test.ts',
  'test/drivers/bigquery-wire.test.ts',
  'test/drivers/postgres-versions.test.ts',
  'test/drivers/ssh-tunnel.test.ts',
  'test/console/*.test.ts',
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
const runs = given.includes('--full') ? full() : [places.length > 0 ? narrow() : quick()]
if (runs.some(({ files }) => files.length === 0)) throw new Error(`there is no test in ${places.join(', ')}`)

function quick(): Run {
  const heavy = new Set(filesOf(HEAVY))
  return { files: everyFile().filter((file) => !heavy.has(file)), stores: 'sqlite' }
}

/** Everything that quick() leaves out. */
function full(): Run[] {
  const onStores = quick().files.filter((file) => readFileSync(join(ROOT, file), 'utf8').includes(' of DIALECTS)'))
  return [{ files: filesOf(HEAVY) }, { files: onStores, stores: 'postgres' }]
}

function narrow(): Run {
  const patterns = places.map((place) => (place.endsWith('.ts') ? place : `${place.replace(/\/$/, '')}/**/*.test.ts`))
  return { files: filesOf(patterns) }
}

function everyFile(): string[] {
  return filesOf(['src/**/*.test.ts', 'test/**/*.test.ts', 'demo/**/*.test.ts', 'scripts/*.test.ts'])
}

function filesOf(patterns: readonly string[]): string[] {
  return globSync(patterns, { cwd: ROOT }).sort()
}

let running: ChildProcess | undefined
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => running?.kill(signal))
for (const run of runs) process.exitCode = Math.max(Number(process.exitCode ?? 0), await codeOf(run))

async function codeOf({ files, stores }: Run): Promise<number> {
  const env: NodeJS.ProcessEnv = { ...process.env }
  if (stores === undefined) delete env['TEST_STORES']
  else env['TEST_STORES'] = stores
  running = spawn(
    process.execPath,
    [
      '--test',
      // Test files wait for servers more than they compute.
      `--test-concurrency=${Math.max(3, Math.min(4, availableParallelism()))}`,
      `--test-reporter=${process.stdout.isTTY ? 'spec' : 'tap'}`,
      '--test-timeout=300000',
      ...options,
      ...files,
    ],
    { cwd: ROOT, stdio: 'inherit', env },
  )
  const [code, signal] = await once(running, 'exit')
  if (signal !== null) process.exit(1)
  return typeof code === 'number' ? code : 1
}
