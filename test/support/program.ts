// The programs that tests start as processes: from source, or from the folder in TEST_BUNDLE. .ci/run sets TEST_BUNDLE,
// because operators run the bundle, and because the bundle starts with two thirds of the CPU time.
import { join, resolve } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')
const BUNDLE = process.env['TEST_BUNDLE']

const program = (name: string): string =>
  BUNDLE === undefined ? join(ROOT, `src/${name}.ts`) : join(resolve(ROOT, BUNDLE), `${name}.js`)

export const MAIN = program('main')
export const CLI = program('cli')
