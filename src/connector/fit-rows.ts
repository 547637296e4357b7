// Removes rows from the end of a query's answer until the answer has at most a given number of bytes. src/query limits
// only the bytes of the rows, but the names of a thousand columns can be most of an answer.

const [QUOTE, BACKSLASH, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST] = [34, 92, 123, 125, 91, 93] as const
const ROWS = '"rows":['

interface Fitted {
  readonly json: string
  readonly rowCount: number
}

/** Returns null if `json` is short enough. If it is too long even without rows, returns it without rows. */
export function rowsWithin(json: string, bytesMax: number): Fitted | null {
  let surplus = Buffer.byteLength(json) - bytesMax
  if (surplus <= 0) return null
  const from = columnsEnd(json) + ROWS.length
  const ends = rowEnds(json, from)
  const end = ends.at(-1) ?? from
  let kept = ends.length
  let at = end
  while (kept > 0 && surplus > 0) {
    const before = ends[kept - 2] ?? from
    surplus -= Buffer.byteLength(json.slice(before, at))
    at = before
    kept--
  }
  const tail = json
    .slice(end)
    .replace(/"rowCount":\d+,"truncated":(?:true|false)/, `"rowCount":${kept},"truncated":true`)
  return { json: json.slice(0, at) + tail, rowCount: kept }
}

/** A column's name may contain `"rows":[`, so skip the columns first. */
function columnsEnd(json: string): number {
  return valueEnd(json, '{"columns":'.length) + 1
}

function rowEnds(json: string, from: number): readonly number[] {
  const ends: number[] = []
  let at = from
  while (json.charCodeAt(at) === OPEN_LIST) {
    at = valueEnd(json, at)
    ends.push(at)
    if (json[at] === ',') at++
  }
  return ends
}

function valueEnd(json: string, from: number): number {
  let depth = 0
  for (let at = from; at < json.length; at++) {
    const unit = json.charCodeAt(at)
    if (unit === QUOTE) at = stringEnd(json, at)
    else if (unit === OPEN || unit === OPEN_LIST) depth++
    else if (unit === CLOSE || unit === CLOSE_LIST) {
      depth--
      if (depth === 0) return at + 1
    }
  }
  return json.length
}

function stringEnd(json: string, from: number): number {
  for (let at = from + 1; at < json.length; at++) {
    const unit = json.charCodeAt(at)
    if (unit === BACKSLASH) at++
    else if (unit === QUOTE) return at
  }
  return json.length
}
