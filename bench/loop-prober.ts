// Requests /health/live repeatedly in a thread of event-loop.ts, and reports the longest wait since the last report on
// demand.
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
