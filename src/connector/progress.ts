// A call that takes under a second is answered with plain JSON. A longer call is answered with a stream of events if
// the client asked for progress: progress every two seconds, and then the result.
import { setTimeout as delay } from 'node:timers/promises'
import type { ServerResponse } from 'node:http'

export const FIRST_MS = 1_000
export const NEXT_MS = 2_000

/** Does not throw the error of the work, because the caller also awaits the work. */
export async function endsSoon(work: Promise<unknown>): Promise<boolean> {
  const timer = new AbortController()
  const ended = work.then(
    () => true,
    () => true,
  )
  try {
    return await Promise.race([ended, delay(FIRST_MS, false, { signal: timer.signal })])
  } finally {
    timer.abort()
  }
}

/** Sends progress until the work has ended, and then its message. */
export async function stream(
  response: ServerResponse,
  work: Promise<string>,
  tick: (seconds: number) => string,
): Promise<void> {
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
    'x-content-type-options': 'nosniff',
    'x-accel-buffering': 'no',
  })
  const send = (message: string) => {
    if (!response.destroyed) response.write(`event: message\ndata: ${message}\n\n`)
  }
  const began = performance.now() - FIRST_MS
  send(tick(FIRST_MS / 1000))
  const timer = setInterval(() => send(tick(Math.round((performance.now() - began) / 1000))), NEXT_MS)
  try {
    send(await work)
  } finally {
    clearInterval(timer)
    response.end()
  }
}

export function stillRunning(seconds: number): string {
  return `Running for ${seconds} s.`
}
