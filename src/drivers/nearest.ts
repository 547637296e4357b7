// Finds the names nearest to an unknown name, for "Did you mean". Callers must pass only exposed or allowed names.

/** The number of characters that are compared. The rest of a longer name is ignored, which bounds the work. */
const LENGTH_MAX = 64
const CANDIDATES_MAX = 5_000

/**
 * Returns at most `count` of the candidates, the nearest first. Equally near candidates keep their order. Two names are
 * near if their edit distance is at most a third of the longer name (or 1), and less than the length of the shorter
 * name. They are also near if one name contains the other, and the shorter name has at least three letters. The distance
 * is Damerau-Levenshtein (a swap of adjacent letters is one edit) and ignores case. Time: at most 5,000 candidates × 64
 * × 64.
 */
export function nearest(name: string, candidates: Iterable<string>, count = 3): string[] {
  const wanted = name.slice(0, LENGTH_MAX).toLowerCase()
  const found: { readonly candidate: string; readonly distance: number }[] = []
  let seen = 0
  for (const candidate of candidates) {
    if (++seen > CANDIDATES_MAX) break
    const other = candidate.slice(0, LENGTH_MAX).toLowerCase()
    const distance = distanceOf(wanted, other)
    if (distance !== null) found.push({ candidate, distance })
  }
  found.sort((a, b) => a.distance - b.distance)
  return found.slice(0, count).map(({ candidate }) => candidate)
}

/** Returns the distance, or null if the names are not near. */
function distanceOf(a: string, b: string): number | null {
  if (a === '' || b === '') return null
  const longer = Math.max(a.length, b.length)
  const shorter = Math.min(a.length, b.length)
  // `order` is near `orders_2024`. A name of one or two letters is excluded, because almost every name contains it.
  const holds = shorter >= 3 && (a.includes(b) || b.includes(a))
  const most = Math.max(1, Math.floor(longer / 3))
  if (!holds && longer - shorter > most) return null
  const distance = edits(a, b)
  // Two names of one or two letters always differ by at most two edits, so near names must have fewer edits than
  // letters.
  if (distance <= most && distance < shorter) return distance
  return holds ? most + 1 : null
}

function edits(a: string, b: string): number {
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      let best = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + same)
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (isSwapped) best = Math.min(best, (before[j - 2] ?? 0) + 1)
      row.push(best)
    }
    before = last
    last = row
  }
  return last[b.length] ?? 0
}

/** Returns `Did you mean a, b or c?`, or an empty string if there are no names. The caller must quote the names. */
export function didYouMean(names: readonly string[]): string {
  const last = names.at(-1)
  if (last === undefined) return ''
  const first = names.slice(0, -1)
  return `Did you mean ${first.length === 0 ? last : `${first.join(', ')} or ${last}`}?`
}
