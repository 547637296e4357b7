// Measures the event loop inside the service. event-loop.ts loads this file into the service. On SIGUSR2, it appends
// the longest event-loop delay since the last signal to BENCH_LOOP_FILE, in milliseconds.
import { appendFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

const delays = monitorEventLoopDelay({ resolution: 1 })
delays.enable()
process.on('SIGUSR2', () => {
  appendFileSync(process.env['BENCH_LOOP_FILE'] ?? '/dev/null', `${(delays.max / 1e6).toFixed(1)}\n`)
  delays.reset()
})
