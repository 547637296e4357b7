// follow-tests.ts changes nothing in the report of a run, whatever fails.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'

const FOLLOW = new URL('follow-tests.ts', import.meta.url).href
const FAILING = join(import.meta.dirname, 'failing-tests.ts')
const SEES = /# an async hook sees promises: (true|false)\n/

/** The report without durations and stacks. */
async function reportOf(options: readonly string[]): Promise<{ code: unknown; report: string }> {
  const { NODE_TEST_CONTEXT: _nested, ...env } = process.env
  const child = spawn(process.execPath, [...options, '--test-reporter=tap', FAILING], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    // If no test gets an error, the tests that wait for it never end.
    timeout: 120_000,
    killSignal: 'SIGKILL',
  })
  const [report, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  const lines = report.replaceAll(/^ *stack: \|-\n(?: .*\n)*?(?= *\.\.\.$)/gm, '').split('\n')
  return { code, report: lines.filter((line) => !/duration_ms/.test(line)).join('\n') }
}

test('without an async hook, the same tests fail for the same reasons', async () => {
  const [own, followed] = await Promise.all([reportOf([]), reportOf(['--import', FOLLOW])])
  assert.equal(own.code, 1)
  assert.equal(own.report.match(SEES)?.[1], 'true')
  assert.equal(followed.report.match(SEES)?.[1], 'false')
  const [one, other] = [own, followed].map(({ code, report }) => ({ code, report: report.replace(SEES, '') }))
  assert.deepEqual(one, other)
  for (const why of ['after an await', 'own hook', 'rejection', 'timer', 'server'])
    assert.match(own.report, new RegExp(`error: '${why}'`))
})
