// Prints the sizes and times of the built console beside their budgets: `npm run prepare`, then `npm run bench:console`.
// The times need Chromium and are medians of several loads after one warm-up.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { startApp } from '../test/support/app.ts'
import { browserOrSkip, ready, signIn } from '../test/support/console.ts'

const FOLDER = fileURLToPath(new URL('../dist/console/', import.meta.url))
const [FIRST_LOAD_KB, LAZY_KB, EDITOR_KB] = [185, 40, 150]
const [COLD_FCP_MS, FCP_MS, LCP_MS, SERVER_MB] = [1_000, 400, 800, 3]
const ROUNDS = 5

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

/** Milliseconds from the start of the navigation. */
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
  const serving = process.memoryUsage().rss
  for (const file of globSync('assets/*.{js,css}', { cwd: FOLDER })) await app.ask('GET', `/app/${file}`)
  line('memory after serving every file', (process.memoryUsage().rss - serving) / 1e6, SERVER_MB, 'MB')
}

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
await times()
