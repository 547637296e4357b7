// Splits long work into slices, so that other requests can run in between. All work in slices shares one slice in each
// turn of the event loop, so that many long requests at once delay others no more than one does.

const SLICE_MS = 8

/** When the slice of this turn began. Null if there was none yet. Otherwise, `turn` is called in the next turn. */
let began: number | null = null
/** What waits for a slice, in the order of waiting. */
const waiting: (() => void)[] = []

/**
 * Call and await the returned function between two steps. After each slice, it lets other requests run, and all other
 * work that waits for a slice. Then it throws the reason of the signal, if the signal has aborted.
 */
export function inSlices(signal?: AbortSignal): () => Promise<void> | undefined {
  sliceBegan()
  return () => (performance.now() - sliceBegan() < SLICE_MS ? undefined : nextSlice(signal))
}

/** Like Array.map(), in slices. Begins with a new slice, because reading the items already took time. */
export async function mapInSlices<T, U>(
  items: readonly T[],
  map: (item: T, n: number) => U,
  signal?: AbortSignal,
): Promise<readonly U[]> {
  const mapped: U[] = []
  await nextSlice(signal)
  const pause = inSlices(signal)
  for (const [n, item] of items.entries()) {
    await pause()
    mapped.push(map(item, n))
  }
  return mapped
}

async function nextSlice(signal: AbortSignal | undefined): Promise<void> {
  sliceBegan()
  await new Promise<void>((resume) => waiting.push(resume))
  signal?.throwIfAborted()
}

function sliceBegan(): number {
  if (began === null) {
    began = performance.now()
    setImmediate(turn)
  }
  return began
}

function turn(): void {
  began = null
  const resume = waiting.shift()
  if (resume === undefined) return
  sliceBegan()
  resume()
}
