// Creates the data folder, and explains why it cannot be used.
import { mkdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Creates the folder with mode 0700. Throws an Error with the reason if this fails. */
export function makeDataFolder(dataDir: string): void {
  try {
    makeFolder(dataDir)
  } catch (error) {
    throw folderFailure(dataDir, error)
  }
}

/** Node's recursive mode never returns for a path in /proc, so create the folders one by one. */
function makeFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return
  const parent = dirname(path)
  if (parent !== path) makeFolder(parent)
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (codeOf(error) === 'EEXIST' && statSync(path).isDirectory()) return
    throw error
  }
}

export function folderFailure(dataDir: string, error: unknown): unknown {
  const why = whyOf(dataDir, codeOf(error))
  return why === null ? error : new Error(why, { cause: error })
}

function whyOf(dataDir: string, code: string): string | null {
  const folder = `The data folder ${dataDir}`
  const another = 'set VITRINE_DATA_DIR to another folder'
  switch (code) {
    case 'EACCES':
    case 'EPERM': {
      const [owner, user] = [statSync(dataDir, { throwIfNoEntry: false })?.uid, process.getuid?.()]
      const whose = owner === undefined || owner === user ? '' : ` It belongs to the user with the id ${owner}.`
      return `${folder} may not be used by this user (id ${user ?? 'unknown'}).${whose} Run chown -R ${user ?? 'USER'} on the folder and all files in it, or ${another}.`
    }
    case 'EROFS':
      return `${folder} is on a read-only file system. Mount a writable volume there, or ${another}.`
    case 'ENOENT':
      return `${folder} cannot be created by Vitrine. Create it yourself, or ${another}.`
    case 'EEXIST':
    case 'ENOTDIR':
      return `${folder} is not a folder: a file has this name. Remove the file, or ${another}.`
    case 'ENOSPC':
    case 'EDQUOT':
      return `${folder} is on a full disk. Free disk space, or ${another}.`
    default:
      return null
  }
}

/**
 * Throws an Error if the store file is empty, but the key shows that the store was used. A failed copy may cause this.
 */
export function requireNotEmptied(dataDir: string): void {
  const size = (name: string) => statSync(join(dataDir, name), { throwIfNoEntry: false })?.size
  if (size('vitrine.db') !== 0 || (size('vitrine.db-wal') ?? 0) > 0 || size('secret.key') === undefined) return
  throw new Error(
    `The store ${join(dataDir, 'vitrine.db')} is empty (0 bytes), but ${join(dataDir, 'secret.key')} shows that it was used before. Restore the store from a backup (vitrine restore). To start with an empty store, remove both files.`,
  )
}

export function storeFileFailure(dataDir: string, error: unknown): Error | null {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return null
  const path = join(dataDir, 'vitrine.db')
  switch (error.errcode & 0xff) {
    case 11:
    case 26:
      return new Error(
        `The store ${path} is damaged. Stop here, copy the data folder, and restore the store from a backup (vitrine restore).`,
        { cause: error },
      )
    case 8:
    case 14:
      return new Error(
        `The store ${path} cannot be written by this user (id ${process.getuid?.() ?? 'unknown'}), or its file system is read-only. Correct the owner and the mode of all files in the data folder.`,
        { cause: error },
      )
    case 10:
      return new Error(`The disk of the store ${path} reports an error. Check the disk, then restore from a backup.`, {
        cause: error,
      })
    case 13:
      return new Error(`The disk of the store ${path} is full. Free disk space, then start again.`, { cause: error })
    default:
      return null
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}
