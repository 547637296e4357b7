// Creates and runs a PostgreSQL cluster as a child process on loopback, for the demo and the tests. The server stops
// when this process ends, even by kill -9.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { access, chown, mkdir, readFile, readlink, realpath, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { hand, type Account } from './account.ts'

/**
 * Creates a cluster in `folder`, which must be missing or empty. The superuser is `postgres`. All logins use SCRAM.
 */
export async function initCluster(
  bin: string,
  folder: string,
  options: { readonly password: string; readonly args: readonly string[]; readonly account: Account | null },
  signal?: AbortSignal,
): Promise<void> {
  const { account, password } = options
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const passwordFile = `${folder}.password`
  await writeFile(passwordFile, password, { mode: 0o600 })
  await using opened = new AsyncDisposableStack()
  opened.defer(() => rm(passwordFile, { force: true }))
  if (account !== null) await Promise.all([own(folder, account), own(passwordFile, account)])
  const data = await hand(folder, 3, account)
  opened.defer(() => data.close())
  const secret = await hand(passwordFile, 4, account)
  opened.defer(() => secret.close())
  const args = ['-D', data.name, '-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${secret.name}`, '-E', 'UTF8']
  const child = spawn(join(bin, 'initdb'), [...args, ...options.args], {
    ...account,
    cwd: '/',
    env: environment(),
    stdio: ['ignore', 'ignore', 'pipe', data.fd, secret.fd],
  })
  const kill = (): boolean => child.kill('SIGKILL')
  signal?.addEventListener('abort', kill, { once: true })
  const errorOutput = tail(child)
  const [code] = await ended(child)
  signal?.removeEventListener('abort', kill)
  signal?.throwIfAborted()
  if (code !== 0) throw new Error(`initdb failed: ${errorOutput()}`)
}

export interface RunningCluster extends AsyncDisposable {
  readonly port: number
  /** Resolves when the server has stopped, for any reason. */
  readonly ended: Promise<void>
  /**
   * Stops the server. `fast` ends sessions and writes all data. `immediate` is faster, because it does not write all
   * data.
   */
  stop(how?: 'fast' | 'immediate'): Promise<void>
}

// The server is our grandchild. This shell waits for the server, and stops it when our end of the shell's standard
// input closes. The kernel closes our end even after kill -9. SIGINT is the fast shutdown.
const keeper = `exec 9<&0
"$@" 9<&- </dev/null & server=$!
{ read -r how <&9; if [ "$how" = immediate ]; then kill -QUIT $server; else kill -INT $server; fi; } & watch=$!
wait $server; code=$?
kill $watch 2>/dev/null
exit $code`

export interface ServerOptions {
  readonly settings: Readonly<Record<string, string>>
  readonly account: Account | null
  /** The preferred port, which is used if it is free. */
  readonly port?: number
}

/** Starts a cluster's server on a port of 127.0.0.1 and waits until it accepts connections. */
export async function startCluster(
  bin: string,
  folder: string,
  options: ServerOptions,
  signal?: AbortSignal,
): Promise<RunningCluster> {
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted()
    // Clean up before a port is chosen, because a server that is still stopping occupies the preferred port.
    if (await exists(join(folder, 'postmaster.pid'))) await clearStaleServer(folder)
    const started = await tryStart(bin, folder, await freePort(attempt < 5 ? options.port : undefined), options)
    if (typeof started !== 'string') return started
    // Retry if a backend of a killed server is still running, or if another process took the port since the check.
    if (attempt === 10 || !/postmaster\.pid|pre-existing shared memory|could not bind/.test(started)) {
      throw new Error(`PostgreSQL did not start: ${started}`)
    }
    await pause(100 * attempt)
  }
}

async function tryStart(
  bin: string,
  folder: string,
  port: number,
  options: ServerOptions,
): Promise<RunningCluster | string> {
  const settings = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    lc_messages: 'C',
    logging_collector: 'off',
    log_destination: 'stderr',
    ...options.settings,
  }
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const data = await hand(folder, 3, options.account)
  // The child is detached, so that Ctrl-C in the terminal reaches only this process, which then stops the server.
  const child = spawn('/bin/sh', ['-c', keeper, 'sh', join(bin, 'postgres'), '-D', data.name, ...args], {
    ...options.account,
    cwd: '/',
    detached: true,
    env: environment(),
    stdio: ['pipe', 'ignore', 'pipe', data.fd],
  })
  await data.close()
  const exited = ended(child).then(() => undefined)
  const errorOutput = tail(child)
  const ready = new Promise<boolean>((resolve) => {
    child.stderr?.on('data', () => {
      if (errorOutput().includes('database system is ready to accept connections')) resolve(true)
    })
    exited.then(
      () => resolve(false),
      () => resolve(false),
    )
  })
  if (!(await ready)) return errorOutput()
  const stop = async (how: 'fast' | 'immediate' = 'fast'): Promise<void> => {
    if (child.stdin?.writable === true) child.stdin.end(`${how}\n`)
    await exited
  }
  return { port, ended: exited, stop, [Symbol.asyncDispose]: () => stop() }
}

/**
 * Cleans up after a crash. If postmaster.pid names a server of this folder, that server is stopping because its owner
 * died: signal it and wait. If the pid now belongs to another process, PostgreSQL would refuse to start, so the file is
 * removed. If the pid is unused, PostgreSQL handles it.
 */
async function clearStaleServer(folder: string): Promise<void> {
  const file = join(folder, 'postmaster.pid')
  const pid = Number((await readFile(file, 'utf8').catch(() => '')).split('\n')[0])
  if (!Number.isInteger(pid) || pid < 2 || !isAlive(pid)) return
  if (!(await isServerOf(pid, folder))) return rm(file, { force: true })
  try {
    process.kill(pid, 'SIGINT')
  } catch {
    // The server stopped between the check and the signal.
  }
  for (let i = 0; i < 50 && (await exists(file)); i++) await pause(100)
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** Returns true if the process serves this folder. Reads its working directory, or without /proc its command line. */
async function isServerOf(pid: number, folder: string): Promise<boolean> {
  const workingFolder = await readlink(`/proc/${pid}/cwd`).catch(() => null)
  if (workingFolder !== null) return workingFolder === (await realpath(folder))
  const child = spawn('ps', ['-o', 'command=', '-p', String(pid)], { stdio: ['ignore', 'pipe', 'ignore'] })
  let command = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => (command += part))
  await ended(child).catch(() => undefined)
  return command.includes(folder)
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Returns the preferred port if it is free, otherwise any port. */
async function freePort(wanted = 0): Promise<number> {
  const server = createServer()
  try {
    server.listen(wanted, '127.0.0.1')
    await once(server, 'listening')
  } catch (error) {
    if (wanted === 0) throw error
    return freePort()
  }
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port could be had on 127.0.0.1')
  return address.port
}

/** Returns an environment with only PATH from this process, because PG* and LC_* variables would affect the server. */
function environment(): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
}

/** Reads a child's standard error continuously. Returns a function that returns its last 4,000 characters. */
function tail(child: ChildProcess): () => string {
  let text = ''
  child.stderr?.setEncoding('utf8').on('data', (part: string) => (text = (text + part).slice(-4000)))
  return () => text.trim()
}

async function ended(child: ChildProcess): Promise<readonly [number | null]> {
  const [code] = await once(child, 'close')
  return [typeof code === 'number' ? code : null]
}

function own(path: string, account: Account): Promise<void> {
  return chown(path, account.uid, account.gid)
}
