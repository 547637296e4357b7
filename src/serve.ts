// The process: configuration → app → listen → signals → dispose. Whatever stops a start is said in one line.
import { once } from 'node:events'
import type { Logger } from 'pino'
import { createApp } from './app.ts'
import type { App } from './app.ts'
import type { Config, Environment } from './config.ts'
import { readConfig } from './config.ts'
import type { Demo } from './demo.ts'
import { openLog } from './log.ts'

/** Serves until SIGTERM or SIGINT. Sets the exit code where it cannot start, and never throws. */
export async function serve(env: Environment): Promise<void> {
  const stop = new AbortController()
  const hurry = new AbortController()
  // The first signal drains the service; a second one ends the grace.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stop.signal.aborted) hurry.abort()
      stop.abort()
    })
  }
  try {
    const config = readConfig(env)
    await run(config, openLog(config), stop.signal, hurry.signal)
  } catch (error) {
    process.exitCode = 1
    process.stderr.write(`${sentence(error)}\n`)
  }
}

async function run(config: Config, log: Logger, stop: AbortSignal, hurry: AbortSignal): Promise<void> {
  await using app = await createApp({ config, log })
  const address = await app.listen()
  process.stdout.write(`Vitrine listens at ${listeningText(config.host, address)}\n`)
  const setupToken = await app.setupToken()
  if (setupToken !== null) process.stdout.write(`The first account is made with this setupToken: ${setupToken}\n`)
  const asksMail = config.smtp !== null
  const place = { address, dataDir: config.dataDir, setupToken, asksMail, stop }
  await using _demo = config.demo ? await demoBeside(app, place) : null
  if (!stop.aborted) await once(stop, 'abort')
  log.info('ending')
  // Before the demo's database is ended: it may be answering.
  await app.drain(hurry)
}

/** The address of each host that stands for every address of the machine, and the loopback address to open instead. */
const EVERY_ADDRESS: ReadonlyMap<string, readonly [string, string]> = new Map([
  ['0.0.0.0', ['0.0.0.0', '127.0.0.1']],
  ['::', ['[::]', '[::1]']],
])

/** Never a loopback address alone for a service that others reach. */
function listeningText(host: string, address: string): string {
  const every = EVERY_ADDRESS.get(host)
  if (every === undefined) return address
  const { port } = new URL(address)
  return `http://${every[0]}:${port} (every address of this machine; on it, open http://${every[1]}:${port})`
}

interface DemoPlace {
  readonly address: string
  readonly dataDir: string
  readonly setupToken: string | null
  readonly asksMail: boolean
  readonly stop: AbortSignal
}

/** The service is ready before its demo is, and goes on where that cannot run. */
async function demoBeside(app: App, { stop, ...place }: DemoPlace): Promise<Demo | null> {
  try {
    const { openDemo } = await import('./demo.ts')
    const demo = await openDemo({ ...place, isNew: await app.isNew(), signal: stop })
    if (demo !== null) process.stdout.write(`${demo.story}\n`)
    return demo
  } catch (error) {
    if (!stop.aborted) process.stdout.write(`There is no demo: ${sentence(error)}\n`)
    return null
  }
}

/** A sentence of ours as it is; a defect with its stack. */
function sentence(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error ? error.code : undefined
  const where = 'address' in error && 'port' in error ? `${String(error.address)}:${String(error.port)}` : ''
  if (code === 'EADDRINUSE') return `${where} is in use by another process. Set PORT to a free one, or end the other.`
  if (code === 'EACCES' && where !== '')
    return `${where} may not be listened on by this user. Set PORT to 1024 or higher.`
  if (code === 'EADDRNOTAVAIL') return `${where} is no address of this machine. Set HOST to one that is.`
  return error.constructor === Error ? error.message : (error.stack ?? error.message)
}
