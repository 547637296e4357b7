// Runs the conformance scenarios of MCP. They call fixtures by name and send no token, so this test mounts the
// connector's route on a server with its own access check. If a scenario does not apply, it is listed with its reason.
// If a listed scenario passes, the runner fails.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { openSdk } from '../../src/connector/answer-with-sdk.ts'
import { startApp } from '../support/app.ts'
import { conformanceServer } from '../support/conformance-server.ts'
import { freePort } from '../support/free-port.ts'
import { decide, locationOf, open, overHttp, registered } from '../support/oauth.ts'

const PACKAGE = '@modelcontextprotocol/conformance'
const RUNNER = join(dirname(createRequire(import.meta.url).resolve(`${PACKAGE}/package.json`)), 'dist/index.js')

const TEXT_ONLY = 'the connector returns text and JSON only'
const NO_ASKING = 'the connector never asks the client for input'
const NO_SESSION = 'needs requests from the server to the client, and so a session'

const BOTH = {
  'completion-complete': 'completion is not declared',
  'tools-call-image': TEXT_ONLY,
  'tools-call-audio': TEXT_ONLY,
  'tools-call-embedded-resource': TEXT_ONLY,
  'tools-call-mixed-content': TEXT_ONLY,
  'resources-read-binary': TEXT_ONLY,
  'prompts-get-embedded-resource': TEXT_ONLY,
  'prompts-get-with-image': TEXT_ONLY,
}

const NOT_APPLICABLE: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '2026-07-28': {
    ...BOTH,
    ...Object.fromEntries(
      [
        'basic-elicitation',
        'basic-sampling',
        'basic-list-roots',
        'request-state',
        'multiple-input-requests',
        'multi-round',
        'missing-input-response',
        'non-tool-request',
        'result-type',
        'tampered-state',
        'capability-check',
        'ignore-extra-params',
      ].map((name) => [`input-required-result-${name}`, NO_ASKING]),
    ),
  },
  '2025-11-25': {
    ...BOTH,
    'logging-set-level': 'the connector sends no log messages to clients',
    'tools-call-with-logging': 'the connector sends no log messages to clients',
    'resources-subscribe': 'nothing changes that a client could subscribe to',
    'resources-unsubscribe': 'nothing changes that a client could subscribe to',
    'tools-call-sampling': NO_SESSION,
    'tools-call-elicitation': NO_SESSION,
    'elicitation-sep1034-defaults': NO_SESSION,
    'elicitation-sep1330-enums': NO_SESSION,
    'server-sse-multiple-streams': 'opens its streams within a session',
  },
}

for (const [revision, skipped] of Object.entries(NOT_APPLICABLE)) {
  test(`the connector conforms to ${revision}, except for ${Object.keys(skipped).length} scenarios that do not apply`, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'vitrine-conformance-'))
    await using app = await startApp({
      connector: {
        authenticator: { authenticateConnector: () => Promise.resolve(CALLER) },
        sdk: () => Promise.resolve(sdk),
      },
    })
    try {
      const file = join(folder, 'expected.yaml')
      await writeFile(
        file,
        `server:\n${Object.keys(skipped)
          .map((name) => `  - ${name}\n`)
          .join('')}`,
      )
      const { code, output } = await run([
        ...['server', '--url', `${app.url}/mcp`, '--requirements', revision],
        ...['--expected-failures', file, '-o', folder, '--timeout', '120000'],
      ])
      assert.equal(code, 0, output)
    } finally {
      await rm(folder, { recursive: true })
    }
  })
}

test('the service conforms to the scenarios for authorization servers: metadata and the authorization code flow', async () => {
  const { output } = await run(['list'])
  const [, named = ''] = /Authorization server scenarios[^\n]*\n((?: {2}- .*\n?)+)/.exec(output) ?? []
  assert.deepEqual(
    [...named.matchAll(/- (\S+)/g)].map(([, name]) => name),
    ['authorization-server-metadata-endpoint', 'authorization-code-grant'],
  )
  // In scenarios named auth/…, the runner is the server and tests a client, so they do not apply.
  assert.ok(!named.includes('auth/'))

  await using app = await startApp()
  const service = overHttp(app)
  const ada = await app.person('Ada')
  const teamId = await app.team(ada)
  const { clientId } = await registered(service, { redirect_uris: ['http://127.0.0.1/callback'] })
  const port = await freePort()
  const asked = ['--url', app.url, '--client-id', clientId, '--resource', `${app.url}/mcp`, '--port', String(port)]
  const runner = spawn(process.execPath, [RUNNER, 'authorization', ...asked], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(runner, 'exit')
  let printed = ''
  for await (const part of runner.stdout) {
    printed += String(part)
    const [url] = new RegExp(`^${app.url}/auth/oauth2/authorize\\?\\S+(?=\\n)`, 'm').exec(printed) ?? []
    if (url === undefined) continue
    printed = printed.replace(url, '(opened)')
    // The person does these steps in the browser.
    const page = locationOf(await open(service, url.slice(app.url.length), ada))
    const decided = await decide(service, ada, page.search.slice(1), { teamIds: [teamId] })
    assert.equal((await fetch(decided.json.url)).status, 200)
  }
  const [code] = await exited
  assert.equal(code, 0, printed)
  assert.doesNotMatch(printed, /skipped|failure/i)
  assert.match(printed, /authorization-code-grant/)
})

const sdk = openSdk(
  {
    get operations(): never {
      throw new Error('no operation is called')
    },
    log: { error: () => undefined },
  },
  conformanceServer,
)

const CALLER = {
  kind: 'key' as const,
  ...({ accountId: 'a', keyId: 'k' } as { accountId: never; keyId: never }),
  name: 'Ada',
  keyName: 'test',
  scopes: new Set(['profile', 'data:schema', 'data:read'] as const),
  teamIds: null,
  datasourceIds: null,
  endedTeamIds: new Set<never>(),
  expiresAt: null,
}

function run(args: readonly string[]): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [RUNNER, ...args], { maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: `${stdout}${stderr}`.slice(-6_000) })
    })
  })
}
