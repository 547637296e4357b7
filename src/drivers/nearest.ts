// Finds the names nearest to an unknown name, for "Did you mean". Callers must pass only exposed or allowed names.

/** The number of characters that are compared. Later characters are ignored, which bounds the work. */
const LENGTH_MAX = 64
const CANDIDATES_MAX = 5_000
/** The maximum number of computed distances, about 5 ms. It is reached only if many long names are similar. */
const PAIRS_MAX = 1_000_000

/**
 * Returns up to `count` candidates, the nearest first. Two names are near if few edits make one from the other: at most
 * a third of the longer name (or 1), and fewer than the letters of the shorter name. They are also near if one contains
 * the other and both have at least three letters. Case does not count, and a swap of two letters is one edit
 * (Damerau-Levenshtein). After 5,000 candidates or PAIRS_MAX steps, further candidates are ignored.
 */
export function nearest(name: string, candidates: Iterable<string>, count = 3): string[] {
  const wanted = comparedPart(name)
  const work = { pairs: 0 }
  const found: { readonly candidate: string; readonly distance: number }[] = []
  let seen = 0
  for (const candidate of candidates) {
    if (++seen > CANDIDATES_MAX || work.pairs > PAIRS_MAX) break
    const distance = distanceOf(wanted, comparedPart(candidate), work)
    if (distance !== null) found.push({ candidate, distance })
  }
  found.sort((a, b) => a.distance - b.distance)
  return found.slice(0, count).map(({ candidate }) => candidate)
}

function comparedPart(name: string): string {
  return name.slice(0, LENGTH_MAX).toLowerCase().slice(0, LENGTH_MAX)
}

/** Counts the distances that are computed between the beginnings of two names. */
interface Work {
  pairs: number
}

/** Returns the distance, or null if the names are not near. */
function distanceOf(a: string, b: string, work: Work): number | null {
  if (a === '' || b === '') return null
  const longer = Math.max(a.length, b.length)
  const shorter = Math.min(a.length, b.length)
  // `order` is near `orders_2024`. A name of one or two letters is excluded, because almost every name contains it.
  const holds = shorter >= 3 && (a.includes(b) || b.includes(a))
  const most = Math.max(1, Math.floor(longer / 3))
  // Two edits turn any name of two letters into any other. So there must be fewer edits than letters.
  return edits(a, b, Math.min(most, shorter - 1), work) ?? (holds ? most + 1 : null)
}

const newRow = (): Uint8Array => new Uint8Array(LENGTH_MAX + 1)

/** Three rows of distances, which are used again for each pair of names. */
const ROWS = [newRow(), newRow(), newRow()] as const

/** Returns the distance, or null if it is over `most`. */
function edits(left: string, right: string, most: number, work: Work): number | null {
  const [a, b] = withoutSameEnds(left, right)
  if (Math.abs(a.length - b.length) > most) return null
  let [before, last, row] = ROWS
  for (let j = 0; j <= b.length; j++) last[j] = j
  let least = 0
  for (let i = 1; i <= a.length; i++) {
    // Elsewhere in this row, the distance is over `most`.
    const [from, to] = [Math.max(1, i - most), Math.min(b.length, i + most)]
    work.pairs += to - from + 1
    row[from - 1] = from === 1 ? i : most + 1
    if (to < b.length) row[to + 1] = most + 1
    const leastBefore = least
    least = row[from - 1] ?? 0
    for (let j = from; j <= to; j++) {
      const same = a.charCodeAt(i - 1) === b.charCodeAt(j - 1) ? 0 : 1
      let best = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + same)
      const isSwapped =
        i > 1 && j > 1 && a.charCodeAt(i - 1) === b.charCodeAt(j - 2) && a.charCodeAt(i - 2) === b.charCodeAt(j - 1)
      if (isSwapped) best = Math.min(best, (before[j - 2] ?? 0) + 1)
      row[j] = best
      least = Math.min(least, best)
    }
    if (least > most && leastBefore > most) return null
    ;[before, last, row] = [last, row, before]
  }
  const distance = last[b.length] ?? 0
  return distance > most ? null : distance
}

/** Returns both names without their common beginning and end, which do not change the distance. */
function withoutSameEnds(a: string, b: string): readonly [string, string] {
  const shorter = Math.min(a.length, b.length)
  let start = 0
  while (start < shorter && a[start] === b[start]) start++
  let end = 0
  while (end < shorter - start && a.at(-1 - end) === b.at(-1 - end)) end++
  return [a.slice(start, a.length - end), b.slice(start, b.length - end)]
}

/** Returns `Did you mean a, b or c?`, or an empty string if there are no names. The caller must quote the names. */
export function didYouMean(names: readonly string[]): string {
  const last = names.at(-1)
  if (last === undefined) return ''
  const first = names.slice(0, -1)
  return `Did you mean ${first.length === 0 ? last : `${first.join(', ')} or ${last}`}?`
}
