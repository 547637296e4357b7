/** Returns a function that returns how many of the `ms` milliseconds are left: a whole number, at least one. */
export function timeLeft(ms: number): () => number {
  const ends = performance.now() + ms
  return () => Math.max(1, Math.ceil(ends - performance.now()))
}
