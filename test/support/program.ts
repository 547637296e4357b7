// Tests start these programs as processes: from source, or from the folder TEST_BUNDLE. .ci/run sets TEST_BUNDLE,
// because operators run the bundle, and because it needs a third less CPU time to start.
import { join, resolve } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')
const given = process.env['TEST_BUNDLE']
export const BUNDLE = given === undefined ? undefined : resolve(ROOT, given)

const program = (name: string): string =>
  BUNDLE === undefined ? join(ROOT, `src/${name}.ts`) : join(BUNDLE, `${name}.js`)

export const MAIN = program('main')
export const CLI = program('cli')
