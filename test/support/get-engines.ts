// `node test/support/get-engines.ts [fetched|packages]` installs the engines of the tests (all, or one group), and
// starts and ends each. For each engine that this machine cannot run, it prints a line. If it exits with 0, all engines
// ran, and .ci/run then requires them (TEST_ENGINES).
import { argv, env } from 'node:process'
import { openZetasql } from '../engines/bigquery/zetasql.ts'
import { startBrowser } from './chromium.ts'
import { startMongod, startNewest } from './mongodb.ts'
import { startPostgres } from './postgres.ts'
import { startRedis } from './redis.ts'

// The analyzer is large, so it is installed only if engines are required.
env['TEST_ENGINES'] = 'required'

type Start = () => Promise<AsyncDisposable>

/**
 * `fetched` comes from npm, and .ci/packages installs `packages`. The engines of a list start one after the other,
 * because they come from one installation. The lists start at the same time.
 */
const ENGINES: Readonly<Record<string, readonly Readonly<Record<string, Start>>[]>> = {
  fetched: [
    {
      PostgreSQL: () => startPostgres(),
      ...Object.fromEntries(
        ([14, 15, 16, 17, 18] as const).map((version) => [`PostgreSQL ${version}`, () => startPostgres({ version })]),
      ),
    },
    { 'MongoDB 6': () => startMongod({ auth: true }), 'the newest MongoDB': startNewest },
    { 'Google’s analyzer': openZetasql },
  ],
  packages: [{ Chromium: startBrowser, Redis: startRedis }],
}

const [, , group] = argv
if (group !== undefined && !(group in ENGINES)) throw new Error(`There is no group of engines ${group}.`)
const wanted = Object.entries(ENGINES).flatMap(([name, lists]) => (group === undefined || group === name ? lists : []))

let missing = 0
await Promise.all(
  wanted.map(async (list) => {
    for (const [name, start] of Object.entries(list)) {
      try {
        await (await start())[Symbol.asyncDispose]()
      } catch (error) {
        missing++
        const [why = ''] = String(error instanceof Error ? error.message : error).split('\n')
        console.log(`the tests of ${name} are skipped: ${why}`)
      }
    }
  }),
)
process.exitCode = missing === 0 ? 0 : 1
