// Starts an installed Chromium or Google Chrome for the tests of the console.
import { chromium, type Browser } from 'playwright-core'
import { exists } from './cache-engine-parts.ts'
import { NoSuchEngine } from './no-such-engine.ts'

const START_MS_MAX = 60_000

/** The headless shell comes first, because it renders like the full browser and needs a third less CPU time. */
const BROWSERS = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/** Throws NoSuchEngine if no Chromium is installed. */
export async function startBrowser(): Promise<Browser> {
  const given = process.env['TEST_CHROMIUM']
  const candidates = given === undefined ? BROWSERS : [given]
  for (const executablePath of candidates) {
    if (!(await exists(executablePath))) continue
    // Without threads for garbage collection, a page needs a tenth less CPU time.
    const args = ['--js-flags=--single-threaded-gc']
    // Chromium's sandbox does not work for root.
    if (process.getuid?.() === 0) args.push('--no-sandbox')
    return chromium.launch({ executablePath, args, timeout: START_MS_MAX })
  }
  throw new NoSuchEngine(
    'No Chromium was found for the console tests. Install the Debian package chromium-headless-shell, or set TEST_CHROMIUM to the path of an existing Chromium executable.',
  )
}
