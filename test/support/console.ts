// Opens a real Chromium on the built console of a running service. A test also fails for problems that a person would
// not notice: a violation of the content security policy, an error in the browser’s console, a request to another
// origin, or a finding of axe. Screenshots go to test/console/.shots, which git ignores.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContext, Page, Request } from 'playwright-core'
import { buildConsole } from '../../console/build.ts'
import { PASSWORD, type TestApp } from './app.ts'
import { startBrowser } from './chromium.ts'
import { makeOnce } from './cache-engine-parts.ts'
import { engineOrSkip } from './no-such-engine.ts'
import { BUNDLE } from './program.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const SHOTS = join(ROOT, 'test/console/.shots')
const WAIT_MS = 120_000

export const WIDE = { width: 1440, height: 900 } as const
export const NARROW = { width: 390, height: 844 } as const

/** Builds the console if there is no bundle (TEST_BUNDLE), and no build of the same sources is cached. */
export async function consoleDir(): Promise<string> {
  if (BUNDLE !== undefined) return join(BUNDLE, 'console')
  const cache = join(ROOT, 'node_modules/.cache/console')
  const hash = createHash('sha256')
  for (const file of globSync(['console/**/*.{ts,tsx,css,html,js,svg,json}', 'src/contract/*.ts'], {
    cwd: ROOT,
  }).sort())
    hash.update(file).update(readFileSync(join(ROOT, file)))
  const name = hash.digest('hex').slice(0, 16)
  const folder = join(cache, name)
  await makeOnce(cache, name, folder, buildConsole)
  return folder
}

/**
 * Chromium writes a style attribute when typed text replaces the whole text of a field. The content security policy
 * refuses the attribute, which has no effect on the page.
 */
export const REPLACED = /style-src-attr inline|^Applying inline style violates/

/** `problems` are those that a person may not notice. */
export interface Watched {
  readonly page: Page
  readonly problems: string[]
}

/**
 * The browser of one test. Each person has a separate context, so all tests of a process can share one process of
 * Chromium.
 */
export class TestBrowser implements AsyncDisposable {
  readonly #browser: Browser
  readonly #contexts: BrowserContext[] = []
  readonly #watched: Watched[] = []

  constructor(browser: Browser) {
    this.#browser = browser
  }

  /** Opens the browser of a new person. `theme` is the theme of the system. */
  async open(
    app: TestApp,
    options: { viewport?: typeof WIDE | typeof NARROW; theme?: 'light' | 'dark' } = {},
  ): Promise<Page> {
    const context = await this.#browser.newContext({
      baseURL: app.url,
      viewport: options.viewport ?? WIDE,
      colorScheme: options.theme ?? 'light',
      reducedMotion: 'reduce',
    })
    this.#contexts.push(context)
    context.setDefaultTimeout(WAIT_MS)
    return this.watch(context, app)
  }

  /** Opens another tab of the same browser. */
  async watch(context: BrowserContext, app: Pick<TestApp, 'url'>): Promise<Page> {
    const page = await context.newPage()
    const problems: string[] = []
    await page.addInitScript(`document.addEventListener('securitypolicyviolation', (event) =>
      console.error('CSP', event.violatedDirective, event.blockedURI, event.sourceFile, event.lineNumber))`)
    page.on('console', (message) => {
      if (message.type() === 'error') problems.push(`${message.text()} (${message.location().url})`)
    })
    page.on('pageerror', (error) => problems.push(error.stack ?? error.message))
    page.on('request', (request) => {
      const { origin, protocol } = new URL(request.url())
      if (/^https?:$/.test(protocol) && origin !== app.url) problems.push(`request to ${request.url()}`)
    })
    this.#watched.push({ page, problems })
    return page
  }

  /** Fails if there was a problem, unless `allowed` matches it. */
  clean(allowed: RegExp = /(?!)/): void {
    const problems = this.#watched.flatMap((each) => each.problems).filter((problem) => !allowed.test(problem))
    assert.deepEqual(problems, [])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#contexts.map((context) => context.close()))
  }
}

let started: Promise<Browser> | undefined
after(async () => {
  const browser = await started?.catch(() => undefined)
  await browser?.close()
})

/** Throws NoSuchEngine. */
async function openBrowser(): Promise<TestBrowser> {
  // If the browser has crashed, start another one, so that the crash fails only one test.
  const last = await started?.catch(() => undefined)
  const open = last?.isConnected() === true ? Promise.resolve(last) : startBrowser()
  started = open
  return new TestBrowser(await open)
}

/** If there is no Chromium, skips the test and returns null. */
export const browserOrSkip = (t: Pick<TestContext, 'skip'>) => engineOrSkip(t, openBrowser)

/** Signs in by typing, and waits for the next page. */
export async function signInOnPage(page: Page, email: string, path = '/app'): Promise<void> {
  await page.goto(path)
  await page.getByRole('textbox', { name: 'Email', exact: true }).fill(email)
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('navigation', { name: 'Main' }).waitFor()
}

/** Gives the person a new session without the sign-in page, which needs less CPU time. */
export async function signIn(page: Page, email: string, path = '/app'): Promise<void> {
  const { request } = page.context()
  const answer = await request.post('/auth/sign-in/email', { data: { email, password: PASSWORD } })
  if (!answer.ok()) throw new Error(`${email} did not sign in: ${answer.status()} ${await answer.text()}`)
  await page.goto(path)
  await page.getByRole('navigation', { name: 'Main' }).waitFor()
}

export const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
export const field = (page: Page, name: string) => page.getByRole('textbox', { name, exact: true })

/** Waits for a message that the console shows for a short time. */
export async function said(page: Page, words: string | RegExp): Promise<void> {
  const status = page.getByRole('status').getByText(words, { exact: true })
  await status.waitFor()
}

/**
 * Ends all sessions of the person while the first request for which `isIt` is true is on its way, and after `when`. So
 * the answer to this request is the first to report the end. Otherwise, another request could open the dialog earlier,
 * over the element that the test clicks next.
 */
export async function endSessionAt(
  page: Page,
  app: TestApp,
  isIt: (request: Request) => boolean,
  when: Promise<unknown> = Promise.resolve(),
): Promise<void> {
  const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ')
  let has = false
  await page.route(
    () => true,
    async (route) => {
      if (!has && isIt(route.request())) {
        has = true
        await when
        await app.must('POST', '/auth/revoke-sessions', { body: {}, headers: { cookie, origin: app.url } })
      }
      await route.fallback()
    },
  )
}

/** The page combines keys to a word only if they come quickly. So this does not wait for the page between two keys. */
export const pressQuickly = (page: Page, keys: Iterable<string>) =>
  Promise.all([...keys].map((key) => page.keyboard.press(key)))

/** Waits until the page shows its heading and loads nothing. */
export async function ready(page: Page, heading?: string): Promise<void> {
  const h1 = heading === undefined ? { level: 1 } : { level: 1, name: heading, exact: true }
  await page.getByRole('heading', h1).first().waitFor()
  // waitForFunction would evaluate code on the page, which the content security policy refuses.
  const loading = page.getByRole('status').filter({ hasText: /^Loading/ })
  while ((await loading.count()) > 0) await loading.first().waitFor({ state: 'detached' })
}

const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']
const MORE = ['region', 'heading-order', 'landmark-one-main']

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** Loads axe without a script element, which the content security policy would refuse. */
async function loadAxe(page: Page): Promise<void> {
  if (await page.evaluate<boolean>('globalThis.axe !== undefined')) return
  await page.evaluate(`${AXE}; 0`)
}

export async function accessible(page: Page, what: string): Promise<void> {
  await loadAxe(page)
  const found: string[] = await page.evaluate(`(async () => {
    const rules = Object.fromEntries(${JSON.stringify(MORE)}.map((id) => [id, { enabled: true }]))
    const { violations } = await axe.run(document, { resultTypes: ['violations'], runOnly: { type: 'tag', values: ${JSON.stringify(TAGS)} }, rules })
    return violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ' ' + target.join(' ') + ': ' + failureSummary))
  })()`)
  assert.deepEqual(found, [], what)
}

/** Saves a screenshot if TEST_SHOTS is set. */
export async function shot(page: Page, name: string): Promise<void> {
  if (process.env['TEST_SHOTS'] === undefined) return
  await mkdir(SHOTS, { recursive: true })
  await page.screenshot({ path: join(SHOTS, `${name}.png`), animations: 'disabled' })
}

/** At each width, the page loads in one theme and then changes to the other. The last theme is dark. */
const LOOKS = [
  ['wide', WIDE, ['dark', 'light']],
  ['narrow', NARROW, ['light', 'dark']],
] as const

/** Checks the accessibility of a page at each width and in each theme. Also saves screenshots. */
export async function eachLook(page: Page, path: string, heading: string, name: string): Promise<void> {
  for (const [width, viewport, themes] of LOOKS) {
    await page.setViewportSize(viewport)
    for (const [n, colorScheme] of themes.entries()) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      if (n === 0) await page.goto(path)
      await ready(page, heading)
      if (n > 0) await transitionsEnd(page)
      await accessible(page, `${path}, ${colorScheme}, ${width}`)
      await shot(page, `${name}-${colorScheme}-${width}`)
    }
  }
  await page.setViewportSize(WIDE)
}

/**
 * The first frame starts the transitions to the colors of the new theme. They take 0.01 ms, so they have ended in the
 * second frame.
 */
async function transitionsEnd(page: Page): Promise<void> {
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(0))))')
}
