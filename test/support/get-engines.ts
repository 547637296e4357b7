// `node test/support/get-engines.ts` installs every engine of the tests, starts and ends it, and prints a line for each
// engine that this machine cannot run. Exits with 0 if all engines ran. .ci/run then requires them (TEST_ENGINES).
import { env } from 'node:process'
import { openZetasql } from '../engines/bigquery/zetasql.ts'
import { startBrowser } from './chromium.ts'
import { startMongod, startNewest } from './mongodb.ts'
import { startPostgres } from './postgres.ts'
import { startRedis } from './redis.ts'

// Require engines, because the analyzer is installed only if engines are required: it is large.
env['TEST_ENGINES'] = 'required'

const ENGINES: Readonly<Record<string, () => Promise<AsyncDisposable>>> = {
  PostgreSQL: () => startPostgres(),
  ...Object.fromEntries(
    ([14, 15, 16, 17, 18] as const).map((version) => [`PostgreSQL ${version}`, () => startPostgres({ version })]),
  ),
  'MongoDB 6': () => startMongod({ auth: true }),
  'the newest MongoDB': startNewest,
  'Google’s analyzer': openZetasql,
  Chromium: startBrowser,
  Redis: startRedis,
}

let missing = 0
for (const [name, start] of Object.entries(ENGINES)) {
  try {
    await (await start())[Symbol.asyncDispose]()
  } catch (error) {
    missing++
    const [why = ''] = String(error instanceof Error ? error.message : error).split('\n')
    console.log(`the tests of ${name} are skipped: ${why}`)
  }
}
process.exitCode = missing === 0 ? 0 : 1
