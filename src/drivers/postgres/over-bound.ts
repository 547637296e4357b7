// How a query fails by a bound of ours that only the database can look at. The printed text computes a number from a text
// that is none; the database repeats that text in its error, and so tells our bound from an error of its own.

const MARK = 'vitrine bound:'
const PATTERN = /vitrine bound: (\d{1,12}) ([a-z_]+|LIKE) (\d{1,20})"/

/** The text that stands before the size found. */
export function overBoundText(what: string, most: number): string {
  return `${MARK} ${most} ${what} `
}

export interface OverBound {
  /** A function, or LIKE. */
  readonly what: string
  readonly most: number
  readonly found: number
}

/** What the message of a failed query says of a bound; undefined where it failed by something else. */
export function readOverBound(code: string, message: string): OverBound | undefined {
  const [, most, what, found] = (code === '22P02' ? PATTERN.exec(message) : null) ?? []
  return what === undefined ? undefined : { what, most: Number(most), found: Number(found) }
}
