// Downloads or unpacks parts of an engine once on a machine, and stores them for later test runs.
import { access, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { NoSuchEngine } from './no-such-engine.ts'

/**
 * Makes `result` once on this machine. Test files run in parallel, so one makes it while the others wait. `make` may
 * fill a folder, which is then renamed to `name` inside the cache folder. Throws NoSuchEngine.
 */
export async function makeOnce(
  cache: string,
  name: string,
  result: string,
  make: (folder: string) => Promise<unknown>,
): Promise<void> {
  if (await exists(result)) return
  await mkdir(cache, { recursive: true })
  const lock = join(cache, `${name}.making`)
  const mine = await mkdir(lock).then(
    () => true,
    () => false,
  )
  if (!mine) {
    for (let waited = 0; waited < 250 && (await exists(lock)); waited++) await wait(1000)
    if (await exists(result)) return
    throw new NoSuchEngine(`The engine's ${name} could not be made for the tests (see ${lock}).`)
  }
  const folder = await mkdtemp(join(cache, `${name}-`))
  try {
    await make(folder)
    if ((await readdir(folder)).length > 0) await rename(folder, join(cache, name))
  } catch (error) {
    const why = error instanceof Error ? (error.message.split('\n')[0] ?? '') : ''
    throw new NoSuchEngine(`The engine's ${name} could not be obtained for the tests (${why}).`)
  } finally {
    await rm(folder, { recursive: true, force: true })
    await rm(lock, { recursive: true, force: true })
  }
}

/** Whether a file or folder with this path exists. */
export function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
