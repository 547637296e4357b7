// Runs the tests with Node's own runner. The tests start the servers that they need, and end them.
//   npm test                  the tests to run while you work: all files except the heavy ones; the store on SQLite
//   npm run test:full         the tests that `npm test` leaves out: the heavy files, and the store on PostgreSQL
//   npm run -s test -- --all  both in one run, as CI does
//   npm test -- src/query     all tests of a folder or file, on both stores
// The last lines are always the counts of everything that ran. The failed tests are listed before the counts.
import { spawn, spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, globSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { run, type TestsStream } from 'node:test'
import { spec, tap } from 'node:test/reporters'
import { parseArgs } from 'node:util'
import { fileURLToPath } from 'node:url'
import { inOneProcess } from '../test/support/in-one-process.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))

/**
 * The heavy files: they start many processes or databases, hash many passwords, compute for long, or wait for timeouts.
 */
const HEAVY = [
  'src/audit/packs.test.ts',
  'src/drivers/postgres/guard/hostile-trees.test.ts',
  'src/sign-in/mailed.test.ts',
  'src/sign-in/audit-account-events.test.ts',
  'src/sign-in/two-factor.test.ts',
  'test/process/*.test.ts',
  'test/attacks/documentation.test.ts',
  'test/attacks/profiles.test.ts',
  'test/attacks/*/fuzz*.test.ts',
  'test/attacks/*/gr*.test.ts',
  'test/attacks/bigquery/mutants.test.ts',
  'test/attacks/*/connector.test.ts',
  'test/attacks/mongodb/heavy.test.ts',
  'test/attacks/mongodb/sweep.test.ts',
  'test/attacks/postgres/existence.test.ts',
  'test/attacks/postgres/http.test.ts',
  'test/attacks/postgres/implicit.test.ts',
  'test/attacks/postgres/partitions.test.ts',
  'test/attacks/postgres/schema-change.test.ts',
  'test/attacks/postgres/wide.test.ts',
  'test/drivers/bigquery-requests.test.ts',
  'test/drivers/postgres-versions.test.ts',
  'test/drivers/ssh-tunnel.test.ts',
  'test/console/*.test.ts',
  'test/support/mongodb.test.ts',
  'test/support/no-such-engine.test.ts',
]

/** These heavy files share processes too, because each would import the service and Playwright, and start Chromium. */
const IN_BROWSER = ['test/console/*.test.ts']

/**
 * These heavy files share processes too, because each would import the service. They change nothing that all files of a
 * process share, and measure nothing of their own process.
 */
const IN_THREES = [
  'test/process/connector-*.test.ts',
  'test/process/datasource-faults.test.ts',
  'test/process/draining.test.ts',
  'test/process/health.test.ts',
  'test/process/killed.test.ts',
  'test/process/replica*.test.ts',
  'test/process/store-down.test.ts',
  'test/process/unread-answers.test.ts',
  'test/process/upkeep.test.ts',
  'test/attacks/documentation.test.ts',
  'test/attacks/profiles.test.ts',
  'test/attacks/*/connector.test.ts',
  'test/attacks/postgres/existence.test.ts',
  'test/attacks/postgres/growth.test.ts',
  'test/attacks/postgres/http.test.ts',
  'test/attacks/postgres/partitions.test.ts',
  'test/attacks/postgres/wide.test.ts',
]

/** These heavy files take longest. They start first, so that none runs alone at the end while other cores are idle. */
const LONGEST = [
  'test/attacks/mongodb/fuzz*.test.ts',
  'test/console/*.test.ts',
  'src/sign-in/*.test.ts',
  'test/process/*.test.ts',
  'test/attacks/mongodb/*.test.ts',
  'src/audit/packs.test.ts',
  'src/drivers/postgres/guard/hostile-trees.test.ts',
  'test/drivers/*.test.ts',
  'test/attacks/*/*.test.ts',
]

/**
 * The files that are not heavy, and yet need their own process: they measure its memory or its CPU time, or change what
 * all files of a process share.
 */
const ALONE = [
  'src/drivers/postgres/catalog/profile.test.ts',
  'src/drivers/postgres/guard/bounds/query-weight.test.ts',
  'src/drivers/postgres/session/run.test.ts',
]

interface Run {
  readonly files: readonly string[]
  /** The tests use only this store. Undefined means both. */
  readonly stores?: 'sqlite' | 'postgres'
}

interface Failure {
  /** The file whose test failed. If the process of several files failed, the files that it had not finished. */
  readonly files: readonly string[]
  readonly why: string
}

/** Test files spend half of their time waiting for servers, so many run at the same time. */
const CONCURRENCY = Math.min(3 * availableParallelism(), 16)
/** The most files that share a process. All files of a process together import the service once. */
const FILES_PER_PROCESS = 16
const HEAVY_FILES_PER_PROCESS = 3
/** A browser that several files share is closed by a hook of the process, not of the first file. */
const BROWSER = 'test/support/console.ts'
/**
 * The time limit of a process. On an idle machine, the longest file takes a minute. A busy machine may need ten times
 * as long.
 */
const TEST_MS_MAX = 900_000
/**
 * The time limit of the whole run, in seconds. Files that have not ended by then are stopped, named and counted as
 * failed.
 */
const SECONDS_MAX = Number(process.env['TEST_SECONDS_MAX'] ?? Infinity)
/** Each process of tests loads this first, which saves a sixth of its CPU time. */
const FOLLOW_TESTS = new URL('../test/support/follow-tests.ts', import.meta.url).href
const MEMORY_DISK = '/dev/shm'
const MEMORY_BYTES_MIN = 6 * 1024 ** 3
/** The maximum number of failed files that run once more, one at a time, if TEST_AGAIN=1 is set, as in .ci/run. */
const AGAIN_FILES_MAX = 5
/** The output names each file that takes at least this long, to show which files make a run long. */
const NAMED_MS = 10_000

const { values: chosen, positionals: places } = parseArgs({
  allowPositionals: true,
  options: {
    all: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    'test-name-pattern': { type: 'string', multiple: true },
  },
})
const runs = chosen.all ? [{ files: everyFile() }] : chosen.full ? full() : [places.length > 0 ? narrow() : quick()]
if (runs.some(({ files }) => files.length === 0)) throw new Error(`there is no test in ${places.join(', ')}`)

function quick(): Run {
  const heavy = new Set(filesOf(HEAVY))
  return { files: everyFile().filter((file) => !heavy.has(file)), stores: 'sqlite' }
}

/** Returns the runs of everything that quick() leaves out. */
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

function longestFirst(files: readonly string[]): readonly string[] {
  const first = new Set(LONGEST.flatMap((pattern) => filesOf([pattern])).filter((file) => files.includes(file)))
  return [...first, ...files.filter((file) => !first.has(file))]
}

/** The counts of all runs, under the names that Node's runner prints. */
const counts: Record<string, number> = { tests: 0, suites: 0, pass: 0, fail: 0, cancelled: 0, skipped: 0, todo: 0 }
const failed: Failure[] = []
/**
 * Tests that failed among other files and passed alone. The run names them, because they must be mended, but does not
 * fail.
 */
const flaky: Failure[] = []
const began = performance.now()
const ended = new Set<string>()
/** The files of each program that runs several files in one process. */
const shared = new Map<string, readonly string[]>()
const stopping = new AbortController()
const deadline = Number.isFinite(SECONDS_MAX) ? setTimeout(() => stopping.abort(), SECONDS_MAX * 1000) : undefined
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopping.abort())

/**
 * Each test file is a process. Without the compile cache, most processes would strip the types of the whole service and
 * compile it again, which takes a quarter of the CPU time of a run.
 */
process.env['NODE_COMPILE_CACHE'] ??= join(ROOT, 'node_modules/.cache/compile')
process.chdir(ROOT)
process.env['TEST_CACHE_DIR'] ??= tmpdir()
/**
 * The seed of the fuzzers, which differs in each run. The fuzzers print the seed. If failed files run again, the seed
 * stays the same.
 */
process.env['RUN_SEED'] ??= String(randomInt(2 ** 31))
const folder = temporaryFolder()
process.env['TMPDIR'] = folder
try {
  if (runs.flatMap(({ files }) => files).length > CONCURRENCY) await prepare()
  for (const each of runs) if (!stopping.signal.aborted) await testsOf(each)
  if (process.env['TEST_AGAIN'] === '1') await runAgain()
} finally {
  clearTimeout(deadline)
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
if (stopping.signal.aborted) tellWhatIsLeft()
if (runs.length > 1 || failed.length > 0 || flaky.length > 0) summarize()
if (failed.length > 0 || stopping.signal.aborted) process.exitCode = 1

/**
 * Creates the temporary folder of all tests, in memory if this machine has enough. On a disk, the tests are slower:
 * each commit of SQLite waits for the disk, and each database server writes its files there.
 */
function temporaryFolder(): string {
  const made = (at: string): string => {
    const path = mkdtempSync(join(at, 'vitrine-test-run-'))
    // The folder has the mode of /tmp, because other accounts, such as PostgreSQL's, create files in it.
    chmodSync(path, 0o1777)
    return path
  }
  if (process.platform !== 'linux' || process.env['TMPDIR'] !== undefined) return made(tmpdir())
  try {
    const { bavail, bsize } = statfsSync(MEMORY_DISK)
    // The folder and the servers of the tests share the memory of the machine or of the container.
    if (bavail * bsize < MEMORY_BYTES_MIN || process.availableMemory() < 2 * MEMORY_BYTES_MIN) return made(tmpdir())
    const path = made(MEMORY_DISK)
    const program = join(path, 'program')
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 })
    if (spawnSync(program).status === 0) return path
    rmSync(path, { recursive: true })
  } catch {
    // The file system in memory does not exist, or may not be used.
  }
  return made(tmpdir())
}

/**
 * Lets another process prepare the files that the tests share. If this process imported the service, the first test
 * file would start later.
 */
async function prepare(): Promise<void> {
  const child = spawn(process.execPath, ['test/support/prepare-run.ts', folder], { stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error('the run could not be prepared')
  process.env['TEST_STORE_TEMPLATE'] = join(folder, 'vitrine.db')
}

async function testsOf({ files, stores }: Run, concurrency = CONCURRENCY): Promise<void> {
  if (stores === undefined) delete process.env['TEST_STORES']
  else process.env['TEST_STORES'] = stores
  const names = chosen['test-name-pattern']
  const stream = run({
    files: programsOf(files, concurrency),
    concurrency,
    timeout: TEST_MS_MAX,
    execArgv: ['--import', FOLLOW_TESTS],
    signal: stopping.signal,
    ...(names === undefined ? {} : { testNamePatterns: names }),
  })
  count(stream)
  const printed = process.stdout.isTTY ? stream.compose(spec) : stream.compose(tap)
  for await (const text of printed) process.stdout.write(text)
}

/**
 * Returns the programs that run these files, each as a process. In a large run, light files share processes, and so do
 * many heavy files. They start first, because each of these processes takes as long as the longest files. Files that
 * run again share nothing.
 */
function programsOf(files: readonly string[], concurrency: number): string[] {
  const isLarge = concurrency > 1 && files.length > concurrency
  const known = (patterns: readonly string[]): readonly string[] => {
    const own = new Set(isLarge ? filesOf(patterns) : [])
    return files.filter((file) => own.has(file))
  }
  const alone = new Set(filesOf([...HEAVY, ...ALONE]))
  const inBrowser = known(IN_BROWSER)
  const inThrees = known(IN_THREES)
  const light = isLarge ? files.filter((file) => !alone.has(file)) : []
  const shares = new Set([...inBrowser, ...inThrees, ...light])
  return [
    ...programsOfMany(inBrowser, HEAVY_FILES_PER_PROCESS, [BROWSER]),
    ...programsOfMany(inThrees, HEAVY_FILES_PER_PROCESS),
    ...programsOfMany(light, FILES_PER_PROCESS),
    ...longestFirst(files.filter((file) => !shares.has(file))).map((file) => join(ROOT, file)),
  ]
}

function programsOfMany(files: readonly string[], filesMax: number, hooks: readonly string[] = []): string[] {
  const count = Math.max(Math.ceil(files.length / filesMax), Math.min(files.length, availableParallelism()))
  return Array.from({ length: count }, (_, n) => {
    const path = join(folder, `process-${shared.size + 1}.test.mjs`)
    const own = files.filter((_, at) => at % count === n)
    shared.set(path, own)
    writeFileSync(path, inOneProcess(own, hooks))
    return path
  })
}

/**
 * Runs failed files again, unless many failed. A busy machine breaks a few tests by chance, but not tests in many
 * files.
 */
async function runAgain(): Promise<void> {
  const files = [...new Set(failed.flatMap((each) => each.files))]
  const places = new Set(failed.map(namesOf))
  if (places.size === 0 || places.size > AGAIN_FILES_MAX || stopping.signal.aborted) return
  // Run nothing again if a failed test is defined in a shared file, because the test file that ran it is then unknown.
  const known = new Set(runs.flatMap((each) => each.files))
  if (!files.every((file) => known.has(file))) return
  console.log(`# these files failed, and run again alone: ${files.join(', ')}`)
  const first = failed.splice(0)
  const once = { ...counts }
  await testsOf({ files }, 1)
  // A test that ran twice counts once.
  Object.assign(counts, once)
  if (stopping.signal.aborted) failed.push(...first)
  if (failed.length > 0) return
  flaky.push(...first)
  const { pass = 0, fail = 0, cancelled = 0 } = once
  Object.assign(counts, { pass: pass + fail + cancelled, fail: 0, cancelled: 0 })
}

function count(stream: TestsStream): void {
  stream.on('test:summary', ({ file, counts: of }) => {
    if (file !== undefined) return
    const { tests, suites, passed, cancelled, skipped, todo } = of
    const fail = tests - passed - cancelled - skipped - todo
    for (const [name, more] of Object.entries({ tests, suites, pass: passed, fail, cancelled, skipped, todo }))
      counts[name] = (counts[name] ?? 0) + more
  })
  stream.on('test:fail', ({ name, file = '', details: { error } }) => {
    if (isOfSubtests(error) || stopping.signal.aborted) return
    const [line = ''] = String(error.cause instanceof Error ? error.cause.message : error.message).split('\n')
    const files = shared.get(file)
    if (files === undefined) failed.push({ files: [relative(ROOT, file)], why: `${name}: ${line}` })
    else if (files.includes(name)) {
      failed.push({ files: [name], why: line })
      // Node counts no failed suite. If a file shares no process, Node counts it as a failed test.
      for (const each of ['tests', 'fail']) counts[each] = (counts[each] ?? 0) + 1
    } else {
      const left = files.filter((each) => !ended.has(each))
      failed.push({ files: left.length > 0 ? left : files, why: line })
    }
  })
  stream.on('test:complete', ({ name, file, details }) => {
    const files = file === undefined ? undefined : shared.get(file)
    if (files === undefined ? name !== file : !files.includes(name)) return
    const path = relative(ROOT, resolve(ROOT, name))
    if (!stopping.signal.aborted) ended.add(path)
    if (details.duration_ms >= NAMED_MS && !process.stdout.isTTY)
      console.log(`# ${path} took ${(details.duration_ms / 1000).toFixed(0)} s`)
  })
}

function namesOf({ files }: Failure): string {
  return files.join(', ')
}

/** Returns whether a test fails only because a test inside it fails. Only the inner test is then listed. */
function isOfSubtests(error: Error): boolean {
  return 'failureType' in error && error.failureType === 'subtestsFailed'
}

/**
 * Adds one failure that names the files that had not ended when the run was stopped, instead of one for each cancelled
 * test.
 */
function tellWhatIsLeft(): void {
  const left = runs.flatMap(({ files }) => longestFirst(files)).filter((file) => !ended.has(file))
  const seconds = ((performance.now() - began) / 1000).toFixed(0)
  failed.push({ files: left, why: `had not ended after ${seconds} s` })
}

function summarize(): void {
  for (const each of flaky) console.log(`# passed only when run again alone: ${namesOf(each)}: ${each.why}`)
  for (const each of failed) console.log(`# failed: ${namesOf(each)}: ${each.why}`)
  for (const [name, value] of Object.entries(counts)) console.log(`# ${name} ${value}`)
  console.log(`# duration_ms ${(performance.now() - began).toFixed(0)}`)
}
