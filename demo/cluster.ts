// Makes and runs a PostgreSQL cluster as a child process on loopback, for the demo and for the tests. The server ends
// with whoever started it, even where that process is killed. It never listens on anything but 127.0.0.1.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { access, chmod, chown, cp, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** The account a server runs as where we are root, which PostgreSQL refuses: nobody, by number, so none need be made. */
export interface Account {
  readonly uid: number
  readonly gid: number
}

/** Null where this process is not root and the server may simply run as it does. */
export function serverAccount(): Account | null {
  return process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : null
}

/** Whether that account could enter a folder: each folder above it lets others through. */
export async function canEnter(folder: string, account: Account | null): Promise<boolean> {
  if (account === null) return true
  for (let path = folder; ; path = dirname(path)) {
    const found = await stat(path).catch(() => null)
    if (found !== null && found.uid !== account.uid && (found.mode & 0o001) === 0) return false
    if (path === dirname(path)) return true
  }
}

/**
 * The `bin` of a native/ folder from npm, copied once to the machine's temporary folder where the account cannot enter
 * the checkout (60 MB, 0.2 s).
 */
export async function reachableBin(native: string, name: string, account: Account | null): Promise<string> {
  if (account === null || (await canEnter(join(native, 'bin'), account))) return join(native, 'bin')
  const copy = join(tmpdir(), `vitrine-${name}`)
  const kept = await stat(copy).catch(() => null)
  if (kept !== null && kept.uid === 0 && kept.isDirectory()) return join(copy, 'bin')
  if (kept !== null) throw new Error(`${copy} is in the way: it was not made by root.`)
  const making = await mkdtemp(`${copy}-`)
  await cp(native, making, { recursive: true, verbatimSymlinks: true })
  await chmod(making, 0o755)
  // Another process may have been quicker: its copy is as good.
  await rename(making, copy).catch(() => rm(making, { recursive: true, force: true }))
  return join(copy, 'bin')
}

/** A new cluster in `folder` (which must not exist yet, or be empty), superuser `postgres`, SCRAM for everybody. */
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
  try {
    if (account !== null) await Promise.all([own(folder, account), own(passwordFile, account)])
    const args = ['-D', folder, '-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${passwordFile}`, '-E', 'UTF8']
    const child = spawn(join(bin, 'initdb'), [...args, ...options.args], {
      ...account,
      ...(signal === undefined ? {} : { signal }),
      cwd: '/',
      env: environment(),
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const said = tail(child)
    const [code] = await ended(child)
    if (code !== 0) throw new Error(`initdb failed: ${said()}`)
  } finally {
    await rm(passwordFile, { force: true })
  }
}

export interface RunningCluster extends AsyncDisposable {
  readonly port: number
  /** Settles when the server has ended, wanted or not. */
  readonly ended: Promise<void>
  /** fast: sessions are ended, all is written. immediate: as if killed, which is quicker. */
  stop(how?: 'fast' | 'immediate'): Promise<void>
}

// The server is the grandchild: this shell waits for it, and ends it when our end of its standard input closes, which
// the kernel does even after kill -9. Its signal is the fast shutdown.
const keeper = `exec 3<&0
"$@" 3<&- </dev/null & server=$!
{ read -r how <&3; if [ "$how" = immediate ]; then kill -QUIT $server; else kill -INT $server; fi; } & watch=$!
wait $server; code=$?
kill $watch 2>/dev/null
exit $code`

/** Starts the server of a cluster on a free port of 127.0.0.1 and waits until it takes connections. */
export async function startCluster(
  bin: string,
  folder: string,
  options: { readonly settings: Readonly<Record<string, string>>; readonly account: Account | null },
  signal?: AbortSignal,
): Promise<RunningCluster> {
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted()
    const started = await tryStart(bin, folder, options)
    if (typeof started !== 'string') return started
    if (attempt === 10) throw new Error(`PostgreSQL did not start: ${started}`)
    if (/postmaster\.pid|pre-existing shared memory/.test(started)) await clearStaleServer(folder)
    // Somebody else took the port between our look and the server's: the next attempt takes another.
    else if (!/Address already in use|could not bind/.test(started))
      throw new Error(`PostgreSQL did not start: ${started}`)
  }
}

async function tryStart(
  bin: string,
  folder: string,
  options: { readonly settings: Readonly<Record<string, string>>; readonly account: Account | null },
): Promise<RunningCluster | string> {
  const port = await freePort()
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
  // Detached: Ctrl-C at the terminal must reach only us, who then end the server in order.
  const child = spawn('/bin/sh', ['-c', keeper, 'sh', join(bin, 'postgres'), '-D', folder, ...args], {
    ...options.account,
    cwd: '/',
    detached: true,
    env: environment(),
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  const gone = ended(child).then(() => undefined)
  const said = tail(child)
  const ready = new Promise<boolean>((resolve) => {
    child.stderr?.on('data', () => {
      if (said().includes('database system is ready to accept connections')) resolve(true)
    })
    gone.then(
      () => resolve(false),
      () => resolve(false),
    )
  })
  if (!(await ready)) return said()
  const stop = async (how: 'fast' | 'immediate' = 'fast'): Promise<void> => {
    if (child.stdin?.writable === true) child.stdin.end(`${how}\n`)
    await gone
  }
  return { port, ended: gone, stop, [Symbol.asyncDispose]: () => stop() }
}

/**
 * Makes way after a crash: a postmaster.pid names a server of this very folder (it is shutting down because its owner
 * died: help and wait), or a number that some other process got since (PostgreSQL would wait for it forever).
 */
async function clearStaleServer(folder: string): Promise<void> {
  const file = join(folder, 'postmaster.pid')
  const pid = Number((await readFile(file, 'utf8').catch(() => '')).split('\n')[0])
  if (Number.isInteger(pid) && pid > 1 && (await commandOf(pid)).includes(folder)) {
    try {
      process.kill(pid, 'SIGINT')
    } catch {
      // It ended between the look and the signal.
    }
    for (
      let i = 0;
      i < 40 &&
      (await access(file).then(
        () => true,
        () => false,
      ));
      i++
    )
      await pause(100)
    return
  }
  await rm(file, { force: true })
  await pause(100)
}

async function commandOf(pid: number): Promise<string> {
  const child = spawn('ps', ['-o', 'command=', '-p', String(pid)], { stdio: ['ignore', 'pipe', 'ignore'] })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => (text += part))
  await ended(child).catch(() => undefined)
  return text === '' ? await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '') : text
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port could be had on 127.0.0.1')
  return address.port
}

/** PG* and LC_* of whoever started us are not meant for this server. */
function environment(): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
}

/** The last 4,000 characters of a child's standard error, which is drained as long as it lives. */
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
