// Counts the work to compare texts by a collation. mongod uses ICU for this, which reads characters one by one. A
// collation ignores some characters, so a comparison may read both texts to their ends, even if their first letters
// differ.
import { plus, product, scaled, sizeOf, type Amount } from './amount.ts'
import { isStored, longestAt, runAt, type Extent } from './value-size.ts'
import { isArray, isDocument, type Bson } from '../../confined-query.ts'

export interface Collation {
  /**
   * True if the query may make long runs of combining marks. ICU sorts the marks of a run, and searches the run for
   * contractions, so the work is the square of the run's length. Stored texts are trusted to have only short runs.
   */
  readonly hasMarks: boolean
}

/**
 * Reading a byte of a text by a collation takes 30 ns. Most scripts take up to 16 ns, ligatures and marks up to 75 ns.
 */
export const BYTE_STEPS = 0.6
/** The steps for each pair of bytes in a run of marks. U+0F71 takes 12 ns, most other marks take at most 1 ns. */
const PAIR_STEPS = 1 / 4
/** The steps of a comparison, besides those for its bytes. */
export const COMPARISON_STEPS = 4

/** The texts in a value that a collation reads. */
export interface Texts {
  readonly bytes: Amount
  /** The longest run of characters that may all be marks, in bytes. */
  readonly run: Amount
}

export function textsOf(extent: Extent): Texts {
  const { bytes, place } = extent
  return { bytes, run: place !== null && isStored(place) ? sizeOf(runAt(place)) : longestOf(extent) }
}

/** Returns the texts in the longest element of an array, or in a value that is no array. */
export function longestText(extent: Extent): Texts {
  return { bytes: longestOf(extent), run: textsOf(extent).run }
}

function longestOf({ bytes, place, isScalar, each }: Extent): Amount {
  if (isScalar) return bytes
  if (place !== null && isStored(place)) return sizeOf(longestAt(place))
  return each === null ? bytes : each.bytes
}

/** Returns the steps to read the texts to their ends. */
export function readByCollation({ bytes, run }: Texts, { hasMarks }: Collation): Amount {
  const steps = scaled(bytes, BYTE_STEPS)
  return hasMarks ? plus(steps, scaled(product(bytes, run), PAIR_STEPS)) : steps
}

/** Characters that a collation may ignore. It ignores letters and digits only in the few listed cases. */
const IGNORED =
  /(?:[^\p{L}\p{N}]|[\u0640\u07fa\u0824\u0828\u0e2f\u0e46\u0f88-\u0f8c\u1cf2\u1cf3\ufc5e-\ufc63\ufcf2-\ufcf4\ufe70-\ufe7f\uff9e\uff9f])+/gu
/** A run of fewer marks takes little time. */
const LONG_RUNS = /\p{M}{5,}/gu

/** A text of the query that is compared with stored values. */
export interface Compared {
  readonly bytes: number
  /** The bytes of characters that a collation may ignore. It may read them in each comparison. */
  readonly ignored: number
  /** The steps for the runs of marks. */
  readonly marks: number
}

export const NO_TEXT: Compared = { bytes: 0, ignored: 0, marks: 0 }

export function comparedWith(text: string): Compared {
  let [ignored, marks] = [0, 0]
  for (const [characters] of text.matchAll(IGNORED)) ignored += Buffer.byteLength(characters)
  if (ignored > 0) for (const [run] of text.matchAll(LONG_RUNS)) marks += Buffer.byteLength(run) ** 2
  return { bytes: Buffer.byteLength(text) + 1, ignored, marks: marks * PAIR_STEPS }
}

export function sumOf(one: Compared, other: Compared): Compared {
  return {
    bytes: one.bytes + other.bytes,
    ignored: one.ignored + other.ignored,
    marks: one.marks + other.marks,
  }
}

export function mostOf(one: Compared, other: Compared): Compared {
  return {
    bytes: Math.max(one.bytes, other.bytes),
    ignored: Math.max(one.ignored, other.ignored),
    marks: Math.max(one.marks, other.marks),
  }
}

/** A run of this many ignored characters makes a comparison take long. */
const LONG_IGNORED = /[^\p{L}\p{N}]{32}/u

export function mayReadLong(text: string): boolean {
  return LONG_IGNORED.test(text)
}

/** Operators that can cut marks out of a stored text, or make marks from other characters. */
const MARKING = new Set(
  '$substr $substrBytes $substrCP $split $regexFind $regexFindAll $ltrim $rtrim $trim $replaceAll $replaceOne $convert $deserializeEJSON $toArray $toObject'.split(
    ' ',
  ),
)
const MARK = /\p{M}/u

/** True if a pipeline contains a mark, or an operator of MARKING. */
export function mayMakeMarks(value: Bson): boolean {
  if (typeof value === 'string') return MARK.test(value)
  if (isArray(value)) return value.some(mayMakeMarks)
  if (!isDocument(value)) return false
  return Object.entries(value).some(([name, below]) => MARKING.has(name) || MARK.test(name) || mayMakeMarks(below))
}
