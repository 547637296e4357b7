// One worker thread of the fuzzer. Its input is {seed, count}, and its output is a tally.
import { parentPort, workerData } from 'node:worker_threads'
import { fuzz } from './fuzz.ts'

parentPort?.postMessage(await fuzz(workerData.seed, workerData.count))
