// Some things take long to make, such as an engine or the built console. They are made once on a machine, and cached
// for later test runs.
import { access, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { NoSuchEngine } from './no-such-engine.ts'

/** There is one attempt per second to get the lock. */
const WAITS_MAX = 250

/**
 * Test files run in parallel. One of them makes the result while the others wait. `make` fills a folder, which is then
 * renamed to `name` inside the cache folder. Throws NoSuchEngine if the result cannot be made.
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
  for (let waited = 0; !(await take(lock)); waited++) {
    if (waited === WAITS_MAX)
      throw new NoSuchEngine(`The engine's ${name} could not be made for the tests (see ${lock}).`)
    await wait(1000)
    if (await exists(result)) return
  }
  const folder = await mkdtemp(join(cache, `${name}-`))
  try {
    if (await exists(result)) return
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

/**
 * Returns true if this process now has the lock, which is a file with the id of its process. If that process was
 * killed, the lock is free.
 */
async function take(lock: string): Promise<boolean> {
  const isMine = await writeFile(lock, String(process.pid), { flag: 'wx' }).then(
    () => true,
    () => false,
  )
  if (isMine) return true
  const text = await readFile(lock, 'utf8').catch(() => '')
  if (text !== '' && !isAlive(Number(text))) await rm(lock, { recursive: true, force: true })
  return false
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

export function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
