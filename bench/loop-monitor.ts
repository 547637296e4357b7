// loop-bench.ts loads this file into the service, to measure the event loop there. On SIGUSR2, it appends two numbers
// to BENCH_LOOP_FILE, in milliseconds since the last signal: the longest delay of the event loop, and the processor
// time of its longest turn. Other programs cannot lengthen the processor time.
import { appendFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

const delays = monitorEventLoopDelay({ resolution: 1 })
delays.enable()
let longestTurn = 0
let before = cpuMs()

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

function turn(): void {
  const now = cpuMs()
  longestTurn = Math.max(longestTurn, now - before)
  before = now
  setImmediate(turn).unref()
}

process.on('SIGUSR2', () => {
  appendFileSync(
    process.env['BENCH_LOOP_FILE'] ?? '/dev/null',
    `${(delays.max / 1e6).toFixed(1)} ${longestTurn.toFixed(1)}\n`,
  )
  delays.reset()
  longestTurn = 0
})
turn()
