// Debian's, Ubuntu's or macOS' own Chromium for the tests of the console.
import { chromium, type Browser } from 'playwright-core'
import { exists } from './cache-engine-parts.ts'
import { NoSuchEngine } from './no-such-engine.ts'

const START_MS_MAX = 60_000

/** The headless shell renders like the whole browser, and uses two thirds of its CPU time. */
const BROWSERS = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/** Starts a separate process of Chromium. Throws NoSuchEngine. */
export async function startBrowser(): Promise<Browser> {
  const given = process.env['TEST_CHROMIUM']
  const candidates = given === undefined ? BROWSERS : [given]
  for (const executablePath of candidates) {
    if (!(await exists(executablePath))) continue
    // Chromium's sandbox does not work for root.
    const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
    return chromium.launch({ executablePath, args, timeout: START_MS_MAX })
  }
  throw new NoSuchEngine(
    'The console’s tests need Chromium: install Debian’s package chromium-headless-shell or chromium, or set TEST_CHROMIUM.',
  )
}
