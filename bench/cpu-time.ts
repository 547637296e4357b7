// CPU time and memory of processes, from /proc. Linux only.
import { readdir, readFile, writeFile } from 'node:fs/promises'

/** /proc/<pid>/stat counts in clock ticks of this length. */
const TICK_MICROS = 10_000

/** Returns the CPU time of a process and all its descendants, in microseconds. Threads that have ended do not count. */
export async function cpuMicros(pid: number): Promise<number> {
  const tasks = await readdir(`/proc/${pid}/task`).catch(() => [])
  const ended = await endedMicros(pid)
  const each = tasks.map(async (task) => {
    const [own, children] = await Promise.all([
      readFile(`/proc/${pid}/task/${task}/schedstat`, 'utf8').catch(() => '0'),
      readFile(`/proc/${pid}/task/${task}/children`, 'utf8').catch(() => ''),
    ])
    const nested = children.split(' ').filter(Boolean).map(Number).map(cpuMicros)
    return (await Promise.all(nested)).reduce((sum, part) => sum + part, Number(own.split(' ')[0]) / 1000)
  })
  return (await Promise.all(each)).reduce((sum, part) => sum + part, ended)
}

/** Returns the CPU time of children that have ended, for example the parallel workers of a query. */
async function endedMicros(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(13, 15)
    .map(Number)
  return (user + system) * TICK_MICROS
}

/** For the process of a database session, the parent is the database server. */
export async function parentOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
}

/** Returns the memory in MB, now and at its peak. */
export async function memory(pid: number): Promise<{ now: number; peak: number }> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8')
  const mb = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(text)?.[1] ?? Number.NaN) / 1024
  return { now: mb('VmRSS'), peak: mb('VmHWM') }
}

/** Starts to measure the peak again. */
export async function resetPeak(pid: number): Promise<void> {
  await writeFile(`/proc/${pid}/clear_refs`, '5')
}
