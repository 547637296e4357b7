// The programs that tests start as processes. From source; with TEST_BUNDLE, from that folder, as .ci/run sets it after
// `npm ci` made the bundle. The bundle starts with two thirds of the CPU time, and is what an operator runs.
import { join, resolve } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')
const BUNDLE = process.env['TEST_BUNDLE']

const program = (name: string): string =>
  BUNDLE === undefined ? join(ROOT, `src/${name}.ts`) : join(resolve(ROOT, BUNDLE), `${name}.js`)

export const MAIN = program('main')
export const CLI = program('cli')
