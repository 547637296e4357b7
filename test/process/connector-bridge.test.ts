// Tests the stdio bridge as a process, in both generations of the protocol. Only messages may appear on stdout.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { crc32, inflateRawSync } from 'node:zlib'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { VERSION } from '../../src/contract/version.ts'
import { messageOf } from '../support/agent.ts'
import { openShop, type Shop } from '../support/shop.ts'

const FOLDER = fileURLToPath(new URL('../../connector-bridge/', import.meta.url))
const BRIDGE = join(FOLDER, 'bridge.mjs')

/** Each line on stdin and stdout is a message. */
function start(env: Record<string, string>, args: readonly string[] = []) {
  const child = spawn(process.execPath, [BRIDGE, ...args], { env: { PATH: process.env['PATH'] ?? '', ...env } })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    child,
    errors: text(child.stderr),
    send: (message: unknown) =>
      void child.stdin.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`),
    // oxlint-disable-next-line typescript/no-explicit-any
    next: async (): Promise<any> => JSON.parse((await lines.next()).value ?? 'null'),
    async ended() {
      child.stdin.end()
      if (child.exitCode === null) await once(child, 'exit')
      return child.exitCode
    },
  }
}

describe('the stdio bridge', () => {
  let shop: Shop
  let env: Record<string, string>
  let at: { teamId: string; datasourceId: string }
  before(async () => {
    shop = await openShop()
    env = { VITRINE_URL: shop.app.url, VITRINE_KEY: shop.key }
    at = { teamId: shop.teamId, datasourceId: shop.datasourceId }
  })
  after(() => shop[Symbol.asyncDispose]())

  for (const [mode, version] of [
    ['auto', '2026-07-28'],
    ['legacy', '2025-11-25'],
  ] as const) {
    test(`the bridge serves the SDK's client in ${version}`, async () => {
      const client = new Client({ name: 'by-stdio', version: '1' }, { versionNegotiation: { mode } })
      await client.connect(new StdioClientTransport({ command: process.execPath, args: [BRIDGE], env }))
      assert.equal(client.getNegotiatedProtocolVersion(), version)
      const { tools } = await client.listTools()
      assert.equal(tools.length, 5)
      const sql = 'SELECT count(*) FROM customers'
      const { structuredContent } = await client.callTool({ name: 'run_query', arguments: { ...at, sql } })
      assert.deepEqual(Reflect.get(Object(structuredContent), 'rows'), [[50]])
      const refused = await client.callTool({
        name: 'run_query',
        arguments: { ...at, sql: 'SELECT email FROM customers' },
      })
      assert.equal(refused.isError, true)
      await client.close()
    })
  }

  test('cancelling a call through the bridge stops its query in the database, and the call gets no answer', async () => {
    await shop.owner.must('PATCH', `/teams/${at.teamId}`, {
      settings: { postgresMaxPlanCost: 1e15, statementTimeoutMs: 60_000 },
    })
    const running = async () =>
      (
        await shop.postgres.query(
          shop.database,
          `SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND datname = current_database()`,
        )
      )[0]?.[0]
    const bridge = start(env)
    const sql = 'SELECT count(*) FROM orders a, orders b, orders c, orders d, orders e'
    bridge.send(messageOf('modern', 'tools/call', { name: 'run_query', arguments: { ...at, sql } }, { id: 'slow' }))
    while ((await running()) !== '1') await new Promise(setImmediate)
    bridge.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'slow' } })
    while ((await running()) !== '0') await new Promise(setImmediate)
    bridge.send(messageOf('modern', 'tools/list', {}, { id: 'next' }))
    assert.equal((await bridge.next()).id, 'next')
    assert.equal(await bridge.ended(), 0)
    assert.equal(await bridge.errors, '')
  })

  test('the bridge answers a wrong key, a wrong address and a line that is not JSON with an error', async () => {
    const call = messageOf('modern', 'tools/list', {}, { id: 7 })
    const wrongKey = start({ ...env, VITRINE_KEY: 'sk_live_wrong' })
    wrongKey.send(call)
    const refused = await wrongKey.next()
    assert.deepEqual([refused.id, /^The key in VITRINE_KEY is not valid/.test(refused.error.message)], [7, true])
    wrongKey.send('{')
    assert.equal((await wrongKey.next()).error.code, -32700)
    assert.equal(await wrongKey.ended(), 0)
    assert.match(await wrongKey.errors, /^The key in VITRINE_KEY is not valid[^\n]*\n$/)

    const nowhere = start({ ...env, VITRINE_URL: 'http://127.0.0.1:1' })
    nowhere.send(call)
    assert.match((await nowhere.next()).error.message, /^Vitrine cannot be reached at http:\/\/127\.0\.0\.1:1\/mcp/)
    await nowhere.ended()
  })

  test('the bridge says which setting is missing, and prints help', async () => {
    for (const [settings, args, code, out, err] of [
      [{}, [], 2, /^$/, /^Set VITRINE_URL/],
      [{ VITRINE_URL: 'x' }, [], 2, /^$/, /^Set VITRINE_URL/],
      [{ VITRINE_URL: 'https://v.example' }, [], 2, /^$/, /^Set VITRINE_KEY/],
      [{}, ['--help'], 0, /VITRINE_KEY/, /^$/],
      [{}, ['--version'], 0, new RegExp(`^${VERSION}\n$`), /^$/],
      [{}, ['--key=x'], 2, /^$/, /^Unknown argument/],
    ] as const) {
      const child = spawn(process.execPath, [BRIDGE, ...args], { env: settings })
      const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
      if (child.exitCode === null) await once(child, 'exit')
      assert.equal(child.exitCode, code, args.join())
      assert.match(stdout, out)
      assert.match(stderr, err)
    }
  })

  test('the bundle contains the manifest and the bridge, and all versions agree', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'vitrine-mcpb-'))
    try {
      const file = join(folder, 'vitrine.mcpb')
      const child = spawn(process.execPath, [join(FOLDER, 'pack.mjs'), file])
      const [code] = await once(child, 'exit')
      assert.equal(code, 0)
      const entries = unzipped(await readFile(file))
      assert.deepEqual([...entries.keys()], ['manifest.json', 'bridge.mjs'])
      assert.equal(entries.get('bridge.mjs'), await readFile(BRIDGE, 'utf8'))
      const read = async (name: string) => JSON.parse(await readFile(join(FOLDER, name), 'utf8'))
      const [manifest, server, own] = await Promise.all(['manifest.json', 'server.json', 'package.json'].map(read))
      const versions = [manifest.version, server.version, server.packages[0].version, own.version]
      assert.deepEqual(new Set(versions), new Set([VERSION]))
      assert.equal(own.mcpName, server.name)
      assert.equal(own.name, server.packages[0].identifier)
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

function unzipped(zip: Buffer): Map<string, string> {
  const files = new Map<string, string>()
  let at = 0
  while (zip.readUInt32LE(at) === 0x04034b50) {
    const [crc, packed, nameLength] = [zip.readUInt32LE(at + 14), zip.readUInt32LE(at + 18), zip.readUInt16LE(at + 26)]
    const from = at + 30 + nameLength
    const content = inflateRawSync(zip.subarray(from, from + packed))
    assert.equal(crc32(content), crc)
    files.set(zip.toString('utf8', at + 30, from), content.toString())
    at = from + packed
  }
  return files
}
