// The files in deploy/ and the code agree: every setting that they use exists, their ports and times fit together, and the
// version is that of the package.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readConfig } from '../src/config.ts'
import { VERSION } from '../src/contract/version.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const read = (path: string) => readFileSync(ROOT + path, 'utf8')
const FILES = globSync('deploy/**/*', { cwd: ROOT, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => `${entry.parentPath}/${entry.name}`.slice(ROOT.length))

const secret = Buffer.alloc(32).toString('base64')

test('every setting in deploy/ is one of the service', () => {
  assert.ok(FILES.length >= 8, FILES.join())
  for (const file of FILES) {
    for (const [name] of read(file).matchAll(/\bVITRINE_[A-Z_]+\b/g)) {
      if (name.endsWith('_')) continue
      const problem = (() => {
        try {
          readConfig({ [name]: '\u0000' })
          return ''
        } catch (error) {
          return error instanceof Error ? error.message : ''
        }
      })()
      assert.doesNotMatch(problem, /unknown setting/, `${file}: ${name}`)
    }
  }
})

/** `NAME: value` of a YAML block, or NAME=value. */
function settingsOf(file: string, from: RegExp): Record<string, string> {
  const block = from.exec(read(file))?.[0] ?? assert.fail(`${file} has no settings`)
  return Object.fromEntries(
    [...block.matchAll(/\b((?:VITRINE|NODE)_[A-Z_]+|HOST|PORT)(?:: |=)'?([^\s']+)'?/g)].map(
      ([, name = '', value = '']) => [name, value],
    ),
  )
}

test('the settings of the image and the chart are valid together', () => {
  const image = settingsOf('deploy/Dockerfile', /^ENV .*$/m)
  const chart = settingsOf('deploy/chart/values.yaml', /^env:\n(?: .*\n)+/m)
  const config = readConfig({ ...image, ...chart, DATABASE_URL: 'postgres://u:p@store/d', VITRINE_SECRET_KEY: secret })
  assert.deepEqual([config.port, config.healthAddr, config.metricsAddr], [3000, '0.0.0.0:3001', '0.0.0.0:3002'])
  const deployment = read('deploy/chart/templates/deployment.yaml')
  for (const port of [3000, 3001, 3002]) assert.match(deployment, new RegExp(`containerPort: ${port}\\b`))
  const grace = Number(/^terminationGracePeriodSeconds: (\d+)$/m.exec(read('deploy/chart/values.yaml'))?.[1])
  assert.ok(grace * 1000 > config.drainDelayMs + config.graceMs)
  const stop = Number(/^TimeoutStopSec=(\d+)$/m.exec(read('deploy/vitrine.service'))?.[1])
  assert.ok(stop * 1000 > readConfig({ HOST: '0.0.0.0' }).drainDelayMs + readConfig({}).graceMs)
})

test('the chart has the version of the package', () => {
  const chart = read('deploy/chart/Chart.yaml')
  assert.match(chart, new RegExp(`^version: ${VERSION}$`, 'm'))
  assert.match(chart, new RegExp(`^appVersion: ${VERSION}$`, 'm'))
})
