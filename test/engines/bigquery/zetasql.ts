// Google's GoogleSQL analyzer and evaluator (ZetaSQL, a build of 2023), as a child process that is called over gRPC on
// loopback. It has 340 MB, so it is installed only if CI requires it, or by hand.
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { exists, makeOnce } from '../../support/cache-engine-parts.ts'
import { NoSuchEngine } from '../../support/no-such-engine.ts'

const HOME = import.meta.dirname
const LIBRARY = join(HOME, 'node_modules/@fivetrandevelopers/zetasql/lib/zetasql')
const INSTALLED = join(HOME, 'node_modules/.package-lock.json')

/**
 * A message of the gRPC protocol. Fields are in snake_case, 64-bit numbers are strings, enums are names, and a oneof is
 * the field that is set.
 */
// Tests read the fields that the protocol defines.
// oxlint-disable-next-line typescript/no-explicit-any
export type Message = any

export type Method =
  | 'Analyze'
  | 'EvaluateQuery'
  | 'ExtractTableNamesFromStatement'
  | 'GetBuiltinFunctions'
  | 'GetLanguageOptions'
  | 'Parse'
  | 'RegisterCatalog'
  | 'UnregisterCatalog'

/** `code` is a code of gRPC: 3 for a faulty query, 4 for a timeout, 11 for out of range, 14 if the server died. */
export class ZetasqlError extends Error {
  override readonly name = 'ZetasqlError'
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

interface Client {
  close(): void
  waitForReady(deadline: number, done: (error?: Error) => void): void
  readonly [method: string]: unknown
}

type Unary = (
  request: Message,
  options: { readonly deadline: number },
  done: (error: { code: number; details: string } | null, answer: Message) => void,
) => void

/** `await using zetasql = await openZetasql()`. If a query has killed the server, the next call starts it again. */
export class Zetasql implements AsyncDisposable {
  readonly #connect: (port: number) => Client
  #running: { readonly child: ChildProcess; readonly client: Client } | null = null
  #starting: Promise<void> | null = null
  #over = false
  /** How often the server was started. A restart loses everything that was registered. */
  generation = 0

  constructor(connect: (port: number) => Client) {
    this.#connect = connect
  }

  /** Throws ZetasqlError. */
  async call(method: Method, request: Message, milliseconds = 20_000): Promise<Message> {
    const { client } = await this.#server()
    const unary = client[method] as Unary
    return new Promise((resolve, reject) => {
      unary.call(client, request, { deadline: Date.now() + milliseconds }, (error, answer) => {
        if (error === null) return resolve(answer)
        if (error.code === 14 && this.#running?.client === client) this.#end()
        reject(new ZetasqlError(error.code, error.details.split('\n')[0] ?? ''))
      })
    })
  }

  async #server(): Promise<{ readonly client: Client }> {
    if (this.#over) throw new Error('the ZetaSQL server has been ended')
    if (this.#running === null) await (this.#starting ??= this.#start().finally(() => (this.#starting = null)))
    if (this.#running === null) throw new Error('the ZetaSQL server did not start')
    return this.#running
  }

  async #start(): Promise<void> {
    const port = await freePort()
    // The shell waits until this process ends, for whatever reason, and then kills the server.
    const watched = '"$0" "$@" & read -r _ || kill -9 $!'
    const child = spawn('sh', ['-c', watched, join(LIBRARY, binary()), '127.0.0.1', String(port)], {
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    const client = this.#connect(port)
    try {
      await new Promise<void>((resolve, reject) => {
        client.waitForReady(Date.now() + 30_000, (error) => (error === undefined ? resolve() : reject(error)))
      })
    } catch (error) {
      client.close()
      child.stdin.end()
      throw error
    }
    this.#running = { child, client }
    this.generation++
  }

  #end(): ChildProcess | null {
    const running = this.#running
    this.#running = null
    running?.client.close()
    running?.child.stdin?.end()
    return running?.child ?? null
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over = true
    await this.#starting?.catch(() => undefined)
    const child = this.#end()
    if (child !== null && child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
}

/** Throws NoSuchEngine if the server cannot run on this machine, or is neither installed nor required. */
export async function openZetasql(): Promise<Zetasql> {
  await install()
  const here = createRequire(import.meta.url)
  const grpc = here('@grpc/grpc-js')
  const loader = here('@grpc/proto-loader')
  const read = { keepCase: true, oneofs: true, longs: String, enums: String, includeDirs: [join(LIBRARY, 'protos')] }
  const { zetasql } = grpc.loadPackageDefinition(loader.loadSync('local_service.proto', read))
  const options = {
    'grpc.max_receive_message_length': 1 << 29,
    'grpc.max_send_message_length': 1 << 29,
    'grpc.initial_reconnect_backoff_ms': 50,
  }
  const opened = new Zetasql((port) => {
    const { ZetaSqlLocalService: Service } = zetasql.local_service
    return new Service(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), options)
  })
  await opened.call('GetLanguageOptions', {})
  return opened
}

async function install(): Promise<void> {
  if (await exists(INSTALLED)) return
  if (process.env['TEST_ENGINES'] !== 'required') {
    throw new NoSuchEngine('Google’s analyzer (340 MB) is not installed: npm ci in test/engines/bigquery.')
  }
  await makeOnce(join(HOME, '.engines'), 'npm', INSTALLED, async () => {
    await promisify(execFile)('npm', ['ci', '--no-audit', '--no-fund'], { cwd: HOME, timeout: 200_000 })
  })
}

function binary(): string {
  const arm = process.arch === 'arm64' ? '_arm' : ''
  if (process.platform === 'linux') return `remote_server${arm}.so`
  if (process.platform === 'darwin') return `remote_server${arm}`
  throw new NoSuchEngine('Google’s analyzer is available for Linux and macOS only.')
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}
