// The parser in a thread of its own, which its owner ends as soon as anything but a syntax error comes of a text: what
// PostgreSQL's memory looks like after that, nobody knows.
import { parentPort } from 'node:worker_threads'
import { loadModule } from 'libpg-query'
import { parseText } from './parse-text.ts'

await loadModule()
parentPort?.on('message', (text: unknown) => {
  // As a text: a tree some thousand levels deep cannot be cloned from thread to thread.
  parentPort?.postMessage(JSON.stringify(parseText(String(text))))
})
parentPort?.postMessage('ready')
