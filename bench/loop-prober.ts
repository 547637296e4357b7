// A thread of loop-bench.ts, which requests /health/live again and again. If asked, it reports the longest wait since
// its last report.
import { get } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'

let longest = 0

function ask(): void {
  const sent = performance.now()
  get(`${String(workerData)}/health/live`, (res) => {
    res.resume().on('end', () => {
      longest = Math.max(longest, performance.now() - sent)
      setTimeout(ask, 2)
    })
  }).on('error', () => setTimeout(ask, 10))
}

ask()
parentPort?.on('message', () => {
  parentPort?.postMessage(longest)
  longest = 0
})
