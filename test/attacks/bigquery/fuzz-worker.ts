// One worker of the fuzzer: {seed, count} in, its tally out.
import { parentPort, workerData } from 'node:worker_threads'
import { fuzz } from './fuzz.ts'

parentPort?.postMessage(await fuzz(workerData.seed, workerData.count))
