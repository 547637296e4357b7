// What a regular expression may cost, by how often it can try again. mongod fails it after some 3 ms of tries that begin at
// one place of the text, but begins anew at every place.

/** What a text that is read from a document is taken to be long. */
export const TEXT_BYTES = 16
/** Steps for one attempt at most: mongod's own limit on tries. */
const ATTEMPT_MAX = 60_000
const TRY = 0.6

/** Steps for a text of so many bytes in which the pattern is not found. */
export function patternSteps(pattern: string, bytes: number): number {
  const { repeats, branches, isAnchored } = partsOf(pattern)
  let tries = 1
  for (let n = 1; n <= repeats && tries < ATTEMPT_MAX / TRY; n++) tries *= bytes / n
  const attempt = Math.min(ATTEMPT_MAX, 0.2 + branches / 50 + (repeats === 0 ? 0 : tries * TRY))
  // Where an attempt begins only here and there, a plain look through the text is left.
  return 2 + bytes / 5 + (isAnchored ? attempt : attempt * bytes)
}

interface Parts {
  /** What may be repeated without a small bound, or refers back. */
  readonly repeats: number
  readonly branches: number
  /** It is tried at the beginning of a line alone. */
  readonly isAnchored: boolean
}

const TOKEN = /\\[\s\S]|\[\^?\]?(?:\\[\s\S]|[^\]\\])*\]|\{\d*,?\d*\}|[\s\S]/g

function partsOf(pattern: string): Parts {
  let [repeats, branches] = [0, 0]
  let isRepeat = false
  for (const [token] of pattern.matchAll(TOKEN)) {
    // A + or ? behind a repetition only says how it is done.
    const again: boolean = !isRepeat && (token === '*' || token === '+' || isLong(token))
    if (again || /^\\[1-9gk]/.test(token)) repeats++
    if (token === '|') branches++
    isRepeat = again
  }
  return { repeats, branches, isAnchored: branches === 0 && /^(?:\^|\\A|\.\*)/.test(pattern) }
}

/** {n,} or {n,m} with a large m. */
function isLong(token: string): boolean {
  const [, least = '', comma = '', most = ''] = /^\{(\d*)(,?)(\d*)\}$/.exec(token) ?? []
  return comma !== '' && (most === '' || Number(most) - Number(least) > 3)
}
