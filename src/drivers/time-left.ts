/** Tells, whenever asked, how much is left of `ms` milliseconds from now on: whole milliseconds, at least one. */
export function timeLeft(ms: number): () => number {
  const ends = performance.now() + ms
  return () => Math.max(1, Math.ceil(ends - performance.now()))
}
