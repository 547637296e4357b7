// Runs the tests with Node's own runner. The tests start the servers that they need, and end them.
//   npm test                  the tests to run while you work: every room, the door, the attacks; the store on SQLite
//   npm run test:full         what `npm test` leaves out: the heavy files, and the store on PostgreSQL
//   npm test -- src/query     all tests of a folder or file, on both stores
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../', import.meta.url))

/** These files start many processes or databases, hash many passwords, compute for long, or wait for timeouts. */
const HEAVY = [
  'src/audit/packs.test.ts',
  'src/drivers/postgres/guard/hostile-trees.test.ts',
  'src/sign-in/mailed.test.ts',
  'src/sign-in/trail.test.ts',
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
  'test/support/mongodb.test.ts',
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

/** Test files wait for servers more than they compute. */
const CONCURRENCY = 4

/**
 * Each test file is a process. Without the cache, most of them would strip and compile the whole service anew: a quarter of the CPU
 * time of a run.
 */
const env: NodeJS.ProcessEnv = { NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/compile'), ...process.env }

let running: ChildProcess | undefined
let isStopped = false
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    isStopped = true
    running?.kill(signal)
  })
}
const folder = mkdtempSync(join(tmpdir(), 'vitrine-test-run-'))
try {
  if (runs.flatMap(({ files }) => files).length > CONCURRENCY) {
    if ((await codeOf(['test/support/prepare-run.ts', folder])) !== 0) throw new Error('the run could not be prepared')
    env['TEST_STORE_TEMPLATE'] = join(folder, 'vitrine.db')
  }
  for (const run of runs) {
    if (!isStopped) process.exitCode = Math.max(Number(process.exitCode ?? 0), await codeOf(argumentsOf(run)))
  }
} finally {
  rmSync(folder, { recursive: true })
}

function argumentsOf({ files, stores }: Run): readonly string[] {
  if (stores === undefined) delete env['TEST_STORES']
  else env['TEST_STORES'] = stores
  return [
    '--test',
    `--test-concurrency=${CONCURRENCY}`,
    `--test-reporter=${process.stdout.isTTY ? 'spec' : 'tap'}`,
    '--test-timeout=300000',
    ...options,
    ...files,
  ]
}

async function codeOf(args: readonly string[]): Promise<number> {
  running = spawn(process.execPath, args, { cwd: ROOT, stdio: 'inherit', env })
  const [code] = await once(running, 'exit')
  return typeof code === 'number' ? code : 1
}
