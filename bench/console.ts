// Prints the sizes, times and memory of the built console beside their budgets. Run `npm run prepare`, then `npm run
// bench:console`. The times need Chromium. The tree and the grid also need PostgreSQL.
import { once } from 'node:events'
import { spawn } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { startApp, type Person, type TestApp } from '../test/support/app.ts'
import { browserOrSkip, ready, signIn } from '../test/support/console.ts'
import { startPostgres } from '../test/support/postgres.ts'

const FOLDER = fileURLToPath(new URL('../dist/console/', import.meta.url))
const [FIRST_LOAD_KB, LAZY_KB, EDITOR_KB] = [185, 40, 150]
const [COLD_FCP_MS, FCP_MS, LCP_MS, SERVER_MB] = [1_000, 400, 800, 3]
const [USABLE_MS, EVENT_MS, FRAME_MS, NODES] = [1_500, 100, 50, 1_500]
const ROUNDS = 5
const [SCHEMAS, TABLES, COLUMNS, ROWS] = [20, 100, 20, 10_000]

const gzipped = (file: string) => gzipSync(readFileSync(join(FOLDER, file)), { level: 9 }).length / 1000

function line(what: string, value: number, limit: number, unit: string): void {
  const verdict = value <= limit ? 'ok' : 'OVER'
  process.stdout.write(
    `${verdict.padEnd(5)} ${value.toFixed(1).padStart(7)} of ${`${limit} ${unit}`.padEnd(9)} ${what}\n`,
  )
}

function sizes(): void {
  const page = readFileSync(join(FOLDER, 'index.html'), 'utf8')
  const named = [...page.matchAll(/(?:src|href)="\/app\/([^"]+\.(?:js|css))"/g)].map((match) => match[1] ?? '')
  line('first load (what index.html names)', sum(named.map(gzipped)), FIRST_LOAD_KB, 'kB gz')
  for (const file of globSync('assets/*.js', { cwd: FOLDER }).sort()) {
    if (named.includes(file)) continue
    const [size, isEditor] = [gzipped(file), /editor/i.test(file)]
    if (size > 5) line(basename(file), size, isEditor ? EDITOR_KB : LAZY_KB, 'kB gz')
  }
}

const sum = (values: readonly number[]) => values.reduce((total, each) => total + each, 0)
const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN

const paint = (page: Page): Promise<number> =>
  page.evaluate(`performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN`)

const largest = (page: Page): Promise<number> =>
  page.evaluate(`new Promise((resolve) => new PerformanceObserver((list) => resolve(list.getEntries().at(-1).startTime))
    .observe({ type: 'largest-contentful-paint', buffered: true }))`)

async function times(): Promise<void> {
  const skip = (why?: string) => process.stdout.write(`skipped: ${why ?? ''}\n`)
  await using browser = await browserOrSkip({ skip })
  if (browser === null) return
  await using app = await startApp({ consoleDir: FOLDER.replace(/\/$/, '') })
  const ada = await app.person('Ada')
  await app.team(ada, 'Acme')
  const page = await browser.open(app)
  await page.goto('/app/sign-in')
  await ready(page, 'Sign in to Vitrine')
  line('FCP of /app/sign-in, cold', await paint(page), COLD_FCP_MS, 'ms')
  line('FCP of /app/sign-in, warm', await repeated(page, '/app/sign-in', 'Sign in to Vitrine', paint), FCP_MS, 'ms')
  await signIn(page, ada.email)
  line('LCP of Datasources', await repeated(page, '/app/t/acme/datasources', 'Datasources', largest), LCP_MS, 'ms')
  await large(app, ada, page)
}

// ── a database of 2,000 tables, and an answer of 10,000 rows ─────────────────────────────────────────────────────────

async function large(app: TestApp, ada: Person, page: Page): Promise<void> {
  await using postgres = await startPostgres()
  const columns = Array.from({ length: COLUMNS }, (_, n) => `column_${n} int`).join(', ')
  const tables = (schema: string) =>
    Array.from({ length: TABLES }, (_, n) => `CREATE TABLE ${schema}.table_${n} (${columns});`).join('')
  const database = await postgres.createDatabase('large')
  for (let n = 0; n < SCHEMAS; n++) await postgres.query(database, `CREATE SCHEMA schema_${n};${tables(`schema_${n}`)}`)
  const values = Array.from({ length: COLUMNS }, (_, n) => `n + ${n}`).join(', ')
  await postgres.query(database, `INSERT INTO schema_0.table_0 SELECT ${values} FROM generate_series(1, ${ROWS}) AS n`)
  const teamId = await app.team(ada, 'Large', { rowCap: ROWS, maxResponseBytes: 50_000_000 })
  const { host, port, superuser: username, password } = postgres
  const id = await app.datasource(ada, teamId, { name: 'large', host, port, database, username, password })
  await looked(ada, `/teams/${teamId}/datasources/${id}`)
  await tree(page, `/app/t/large/datasources/${id}/exposure`)
  const shown = [{ schema: 'schema_0', table: 'table_0', columns: null }]
  await ada.must('PUT', `/teams/${teamId}/datasources/${id}/exposure`, { tables: shown })
  await grid(page, `/app/t/large/playground?q=${encodeURIComponent('SELECT * FROM schema_0.table_0')}`)
}

async function looked(ada: Person, at: string): Promise<void> {
  while ((await ada.must('GET', at)).tableCount !== SCHEMAS * TABLES) await pause(200)
}

async function tree(page: Page, path: string): Promise<void> {
  const item = (name: string) => page.getByRole('treeitem', { name: new RegExp(`^${name} `) })
  const usable = async () => {
    await item('schema_0').waitFor()
    return page.evaluate<number>('performance.now()')
  }
  line('exposure of 2,000 x 20: usable', await repeated(page, path, 'Exposure', usable), USABLE_MS, 'ms')
  await page.getByRole('tree').focus()
  const press = (key: string) => () => page.keyboard.press(key)
  const steps: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['down', press('ArrowDown')],
    ['open a schema of 100', press('ArrowRight')],
    ['page down', press('PageDown')],
    ['open a table', press('ArrowRight')],
    ['tick a table', press('Space')],
    ['untick a table', press('Space')],
    ['to the top', press('Home')],
    ['tick a schema of 2,000 columns', press('Space')],
    ['tick another schema', async () => (await press('ArrowDown')(), await press('Space')())],
    ['open all siblings', press('*')],
    ['to the end', press('End')],
    ['tick everything', async () => page.getByRole('treeitem').last().locator('.tree-box').click()],
    ['filter: a letter', () => page.getByRole('searchbox').pressSequentially('t')],
    ['filter: more letters', () => page.getByRole('searchbox').pressSequentially('able_1')],
    ['filter: what is hidden', () => page.getByRole('button', { name: 'Hidden', exact: true }).click()],
    ['clear the filter', () => page.getByRole('button', { name: 'All', exact: true }).click()],
  ]
  for (const [what, act] of steps) line(`tree: ${what}`, await slowestEvent(page, act), EVENT_MS, 'ms')
  line('nodes of the tree page', await page.evaluate<number>(`document.querySelectorAll('*').length`), NODES, '')
}

async function grid(page: Page, path: string): Promise<void> {
  await page.goto(path)
  await ready(page, 'Playground')
  await page.getByRole('button', { name: /^Run query/ }).click()
  const grid = page.getByRole('grid', { name: 'Result', exact: true })
  await grid.waitFor()
  await grid.focus()
  for (const key of ['ArrowDown', 'PageDown', 'Control+End', 'Control+Home'])
    line(`grid: ${key}`, await slowestEvent(page, () => page.keyboard.press(key)), EVENT_MS, 'ms')
  const typing = () => page.getByRole('textbox', { name: 'Query', exact: true }).pressSequentially(' LIMIT 9')
  line('grid: typing above it', await slowestEvent(page, typing), EVENT_MS, 'ms')
  const frames = await page.evaluate<number[]>(`new Promise((resolve) => {
    const grid = document.querySelector('[role=grid]'), times = []
    let last = performance.now()
    requestAnimationFrame(function frame(now) {
      times.push(now - last)
      last = now
      grid.scrollTop += 900
      if (times.length < 240) requestAnimationFrame(frame)
      else resolve(times.slice(1))
    })
  })`)
  const sorted = frames.toSorted((a, b) => a - b)
  line('grid: 95 % of frames while it scrolls', sorted[Math.floor(sorted.length * 0.95)] ?? NaN, FRAME_MS, 'ms')
  line('nodes of the grid page', await page.evaluate<number>(`document.querySelectorAll('*').length`), NODES, '')
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Returns the longest time from an input to the next paint. Event timing does not report times below 16 ms. */
async function slowestEvent(page: Page, act: () => Promise<unknown>): Promise<number> {
  await page.evaluate(`(() => {
    globalThis.slowest = 0
    globalThis.watching?.disconnect()
    globalThis.watching = new PerformanceObserver((list) => {
      for (const { interactionId, duration } of list.getEntries()) if (interactionId > 0) slowest = Math.max(slowest, duration)
    })
    watching.observe({ type: 'event', durationThreshold: 16 })
  })()`)
  await act()
  await pause(400)
  return page.evaluate<number>('slowest')
}

// ── the service's own process ────────────────────────────────────────────────────────────────────────────────────────

/** Measures how much memory the service needs to serve the console, after a warm-up by other requests. */
async function memory(): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'vitrine-bench-'))
  const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))
  const env = { PATH: process.env['PATH'], VITRINE_DEMO: '0', PORT: '0', VITRINE_DATA_DIR: dataDir, LOG_LEVEL: 'error' }
  const child = spawn(process.execPath, ['--max-semi-space-size=4', '--heap-growing-percent=80', main], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    let out = ''
    child.stdout.on('data', (chunk) => (out += String(chunk)))
    while (!/listens at \S+\n/.test(out)) await once(child.stdout, 'data')
    const url = /listens at (\S+)/.exec(out)?.[1] ?? ''
    const files = globSync('**/*.{js,css,html,svg}', { cwd: FOLDER }).map((file) => `/app/${file}`)
    const get = async (paths: readonly string[]) => {
      for (const path of paths) await (await fetch(url + path)).arrayBuffer()
      await pause(200)
      return residentMb(child.pid ?? 0)
    }
    const others = files.map(() => '/health/live')
    // The memory of a new process grows with every request, so warm up first.
    for (let n = 0; n < 15; n++) await get(others)
    const before = await get(others)
    for (let n = 0; n < 3; n++) await get(files)
    line('memory gained by serving the console', (await get(others)) - before, SERVER_MB, 'MB')
  } finally {
    child.kill('SIGTERM')
    await once(child, 'exit')
    await rm(dataDir, { recursive: true, force: true })
  }
}

const residentMb = (pid: number) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? NaN) / 1024

async function repeated(page: Page, path: string, heading: string, measure: (page: Page) => Promise<number>) {
  const values: number[] = []
  for (let n = 0; n < ROUNDS; n++) {
    await page.goto(path)
    await ready(page, heading)
    values.push(await measure(page))
  }
  return median(values)
}

if (!existsSync(FOLDER)) throw new Error('The console is not built. Run npm run prepare.')
sizes()
if (existsSync('/proc/self/status')) await memory()
await times()
