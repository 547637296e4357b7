// Builds the console into a folder. Adds a brotli and a gzip copy of each file of at least 1,000 bytes.
import { constants, brotliCompress, gzip } from 'node:zlib'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'vite'

/** The minimum size of a file that gets compressed copies. A copy of a smaller file would not save a network packet. */
const SMALL_BYTES = 1_000

/**
 * Returns the paths of the bundled modules. Throws if zod, the contract's schema library, was bundled: the console may
 * import only types of the contract.
 */
export async function buildConsole(folder: string): Promise<readonly string[]> {
  const configFile = join(import.meta.dirname, 'vite.config.ts')
  const built = await build({ configFile, logLevel: 'warn', build: { outDir: folder } })
  const outputs = Array.isArray(built) ? built.flatMap(({ output }) => output) : 'output' in built ? built.output : []
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  for (const file of files) await compress(file)
  return outputs.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
}

async function compress(file: string): Promise<void> {
  const content = await readFile(file)
  if (/\.js$/.test(file) && /\bZodError\b/.test(content.toString())) throw new Error(`${file} contains zod`)
  if (content.length < SMALL_BYTES) return
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length }
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(content, { params }),
    promisify(gzip)(content, { level: 9 }),
  ])
  await Promise.all([writeFile(`${file}.br`, br), writeFile(`${file}.gz`, gz)])
}
