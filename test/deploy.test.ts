// The files in deploy/ must agree with the code: every setting in the files exists, the ports and times are consistent,
// and the chart has the version of the package.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { readConfig } from '../src/config.ts'
import { VERSION } from '../src/contract/version.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const run = promisify(execFile)
const read = (path: string) => readFileSync(ROOT + path, 'utf8')
const FILES = globSync('deploy/**/*', { cwd: ROOT, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => `${entry.parentPath}/${entry.name}`.slice(ROOT.length))

const secret = Buffer.alloc(32).toString('base64')

test('every setting in deploy/ is a setting of the service', () => {
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

/** Returns the settings of a file. They are written as `NAME: value` in a YAML block, or as NAME=value. */
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

const SETTINGS = [
  ...new Set(
    [...read('src/config.ts').matchAll(/'(VITRINE_[A-Z_]+|PORT|HOST|[A-Z]+_URL|LOG_LEVEL)'/g)].map(
      ([, name = '']) => name,
    ),
  ),
].sort()

/** The chart takes these settings from a Secret. */
const IN_SECRET = [
  'DATABASE_URL',
  'REDIS_URL',
  'SMTP_URL',
  'VITRINE_GITHUB_CLIENT_SECRET',
  'VITRINE_GOOGLE_CLIENT_SECRET',
  'VITRINE_MODEL_KEY',
  'VITRINE_OIDC_CLIENT_SECRET',
  'VITRINE_SECRET_KEY',
  'VITRINE_SECRET_KEY_PREVIOUS',
]

test('every setting is in the example for compose and systemd once', () => {
  const listed = [...read('deploy/vitrine.env.example').matchAll(/^#([A-Z_]+)=/gm)].map(([, name = '']) => name)
  assert.deepEqual(listed.sort(), SETTINGS)
  assert.match(read('deploy/compose.yaml'), /env_file: \[\{ path: vitrine\.env, required: false \}\]/)
})

test('the chart takes every setting that is neither a secret nor fixed by the image', () => {
  const { properties } = JSON.parse(read('deploy/chart/values.schema.json'))
  assert.equal(properties.env.additionalProperties, false)
  // VITRINE_DEMO is only for trying the service. The image sets the other settings, because the chart relies on them.
  const fixed = ['HOST', 'PORT', 'VITRINE_DATA_DIR', 'VITRINE_DEMO', 'VITRINE_HEALTH_ADDR']
  assert.deepEqual([...Object.keys(properties.env.properties), ...IN_SECRET, ...fixed].sort(), SETTINGS)
  const values = Object.keys(settingsOf('deploy/chart/values.yaml', /^env:\n(?: .*\n)+/m))
  for (const name of values) assert.ok(name in properties.env.properties, name)
  const keys = [...read('deploy/chart/values.yaml').matchAll(/^([a-zA-Z]+):/gm)].map(([, name = '']) => name)
  for (const name of keys) assert.ok(name in properties, name)
})

test('the chart is linted, rendered and valid for Kubernetes', async (t) => {
  const tools = await Promise.all(['helm', 'kubernetes-validate'].map((tool) => isInstalled(tool)))
  if (tools.includes(false)) return t.skip('there is no helm or no kubernetes-validate on the PATH')
  const { stdout } = await run(ROOT + 'deploy/check-chart')
  assert.match(stdout, /^the chart is valid$/m)
})

test('the systemd unit is valid', async (t) => {
  if (!(await isInstalled('systemd-analyze'))) return t.skip('there is no systemd-analyze on the PATH')
  const { stdout, stderr } = await run('systemd-analyze', ['verify', ROOT + 'deploy/vitrine.service'])
  assert.equal(stdout + stderr, '')
})

async function isInstalled(tool: string): Promise<boolean> {
  const { stdout } = await run('sh', ['-c', `command -v ${tool} || true`])
  return stdout.trim() !== ''
}

test('the chart has the version of the package', () => {
  const chart = read('deploy/chart/Chart.yaml')
  assert.match(chart, new RegExp(`^version: ${VERSION}$`, 'm'))
  assert.match(chart, new RegExp(`^appVersion: ${VERSION}$`, 'm'))
})
