// The service as a process: reads the configuration, opens the app, waits for a signal, and closes the app.
import { once } from 'node:events'
import type { Logger } from 'pino'
import { createApp } from './app.ts'
import type { App } from './app.ts'
import type { Config, Environment, Start } from './config.ts'
import { readConfig } from './config.ts'
import type { Demo } from './demo.ts'
import { openLog } from './log.ts'
import { openControl } from './upkeep/control-socket.ts'

/** Runs until SIGTERM or SIGINT. If the start fails, prints the reason and sets the exit code. Never throws. */
export async function serve(env: Environment, start: Start = {}): Promise<void> {
  const stop = new AbortController()
  const hurry = new AbortController()
  // The first signal drains the service. The second one ends the grace period.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stop.signal.aborted) hurry.abort()
      stop.abort()
    })
  }
  try {
    const config = readConfig(env, start)
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
  const warming = app.warm(stop)
  await using _control = app.copyTo === null ? null : await openControl(config.dataDir, app.copyTo)
  const setupToken = await app.setupToken()
  if (setupToken !== null) process.stdout.write(`Create the first account with this setupToken: ${setupToken}\n`)
  const asksMail = config.smtp !== null
  const place = { address, dataDir: config.dataDir, setupToken, asksMail, stop }
  await using _demo = config.demo ? await startDemo(app, place) : null
  if (!stop.aborted) await once(stop, 'abort')
  log.info('stopping')
  await warming
  // A query may still run in the demo's database, so drain before that database stops.
  await app.drain(hurry)
}

/** For each wildcard host, its form in a URL, and the loopback address to open instead. */
const EVERY_ADDRESS: ReadonlyMap<string, readonly [string, string]> = new Map([
  ['0.0.0.0', ['0.0.0.0', '127.0.0.1']],
  ['::', ['[::]', '[::1]']],
])

/** If other machines can reach the service, the printed text must not be only a loopback address. */
function listeningText(host: string, address: string): string {
  const every = EVERY_ADDRESS.get(host)
  if (every === undefined) return address
  const { port } = new URL(address)
  return `http://${every[0]}:${port} (every address of this machine; on this machine, open http://${every[1]}:${port})`
}

interface DemoPlace {
  readonly address: string
  readonly dataDir: string
  readonly setupToken: string | null
  readonly asksMail: boolean
  readonly stop: AbortSignal
}

/** If the demo fails, the service goes on without it. */
async function startDemo(app: App, { stop, ...place }: DemoPlace): Promise<Demo | null> {
  try {
    const { openDemo } = await import('./demo.ts')
    const say = (line: string) => void process.stdout.write(`${line}\n`)
    const demo = await openDemo({ ...place, say, isNew: await app.isNew(), signal: stop })
    if (demo !== null) process.stdout.write(`${demo.story}\n`)
    return demo
  } catch (error) {
    if (!stop.aborted) process.stdout.write(`The demo is off: ${sentence(error)}\n`)
    return null
  }
}

/** Explains an address that cannot be used. Our own errors keep their text, and others are printed with their stack. */
function sentence(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error ? error.code : undefined
  const host = 'address' in error ? String(error.address) : ''
  const where = 'port' in error ? `${host}:${String(error.port)}` : host
  if (code === 'EADDRINUSE')
    return `${where} is in use by another process. Set PORT to a free port, or stop the other process.`
  if (code === 'EACCES' && where !== '') return `${where} is not allowed for this user. Set PORT to 1024 or higher.`
  if (code === 'EADDRNOTAVAIL')
    return `${where} is not an address of this machine. Set HOST to an address of this machine.`
  return error.constructor === Error ? error.message : (error.stack ?? error.message)
}
