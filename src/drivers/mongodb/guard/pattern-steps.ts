// Estimates the steps of a regular expression by how much it can backtrack. mongod fails a match that backtracks for about
// 3 ms from one start position, but it starts again at every position of the string.

/** The maximum number of steps for one start position, by mongod's own backtracking limit. */
const ATTEMPT_MAX = 60_000
const TRY = 0.6

/** Returns the steps for a string of this many bytes that does not match the pattern. */
export function patternSteps(pattern: string, bytes: number): number {
  const { repeats, branches, isAnchored } = partsOf(pattern)
  let tries = 1
  for (let n = 1; n <= repeats && tries < ATTEMPT_MAX / TRY; n++) tries *= bytes / n
  const attempt = Math.min(ATTEMPT_MAX, 0.2 + branches / 50 + (repeats === 0 ? 0 : tries * TRY))
  // If matches can start at few positions only, mongod only scans the string for these positions.
  return 2 + bytes / 5 + (isAnchored ? attempt : attempt * bytes)
}

/** Returns the steps for each byte of a long text. They depend on the branches that are tried at each position. */
export function branchSteps(pattern: string): number {
  return 0.4 + partsOf(pattern).branches / 3
}

/**
 * Returns the steps for each pair of bytes of a long text. From each possible start of a match, a wide repetition such as `.*` runs to the
 * end of the line and back.
 */
export function wideSteps(pattern: string): number {
  const { isWide, isAnchored, branches, repeats } = partsOf(pattern)
  if (isAnchored || !isWide) return 0
  const steps = WIDE_STEPS * Math.max(1, repeats)
  // If a match must begin with a letter, only few positions can start a match.
  return branches === 0 && /^\w(?![*?{])/.test(pattern) ? steps / 8 : steps
}

const WIDE_STEPS = 1 / 20

/** Returns the steps for each pair of a byte of the text and a byte of its longest word. Repetitions such as `\w+` end at a space. */
export function narrowSteps(pattern: string): number {
  const { repeats, isWide, isAnchored } = partsOf(pattern)
  return isAnchored || isWide || repeats === 0 ? 0 : WIDE_STEPS * repeats
}

interface Parts {
  /** Number of repetitions without a small bound, and of back references. */
  readonly repeats: number
  /** Whether something that most characters match is repeated. */
  readonly isWide: boolean
  readonly branches: number
  /** Whether a match can start only at the beginning of a line. */
  readonly isAnchored: boolean
}

/** With this option, `^` matches at the beginning of each line. */
const LINES = /\(\?[a-z]*m/

/** Returns the pattern with its options inside. */
export function withOptions(pattern: string, options: string): string {
  return options.includes('m') ? `(?m)${pattern}` : pattern
}

const TOKEN = /\\[\s\S]|\[\^?\]?(?:\\[\s\S]|[^\]\\])*\]|\{\d*,?\d*\}|[\s\S]/g
/** A dot, a negated class, and escapes that match most characters. */
const MOST = /^(?:\.|\[\^[\s\S]*|\\[DSW]|\[[\s\S]*\\[DSWs][\s\S]*)$/

function partsOf(pattern: string): Parts {
  let [repeats, branches] = [0, 0]
  let [isGroup, counts] = [false, 0]
  let [isRepeat, isMost, holdsMost, isWide] = [false, false, false, false]
  for (const [token] of pattern.matchAll(TOKEN)) {
    // A + or ? after a repetition only makes it possessive or lazy.
    const again: boolean = !isRepeat && (token === '*' || token === '+' || isLong(token))
    if (again || /^\\[1-9gk]/.test(token)) repeats++
    const isQuantifier = token === '*' || token === '+' || (token.length > 2 && token.startsWith('{'))
    if ((again && isMost) || (isQuantifier && isGroup && counts > 0)) isWide = true
    if (isQuantifier) counts++
    if (token === '|') branches++
    isRepeat = again
    holdsMost ||= MOST.test(token)
    isGroup = token === ')'
    isMost = isGroup ? holdsMost : MOST.test(token)
  }
  return {
    repeats,
    isWide,
    branches,
    isAnchored: branches === 0 && /^(?:\(\?[a-z]*\))?(?:\^|\\A)/.test(pattern) && !LINES.test(pattern),
  }
}

/** Returns whether a token is {n,} or {n,m} with a large m. */
function isLong(token: string): boolean {
  const [, least = '', comma = '', most = ''] = /^\{(\d*)(,?)(\d*)\}$/.exec(token) ?? []
  return comma !== '' && (most === '' || Number(most) - Number(least) > 3)
}
