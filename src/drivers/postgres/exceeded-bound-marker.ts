// Encodes bounds that only the database can check. The printed text casts a marker string to a number. The cast fails,
// and the database repeats the string in its error message, which identifies the bound.

const MARK = 'vitrine bound:'
const PATTERN = /vitrine bound: (\d{1,12}) ([a-z_]+|LIKE) (\d{1,20})"/

/** Returns the marker string before the actual size. */
export function overBoundText(what: string, most: number): string {
  return `${MARK} ${most} ${what} `
}

export interface OverBound {
  /** What is bounded: a function, LIKE, or a word such as `comparison` or `except`. */
  readonly what: string
  readonly most: number
  readonly found: number
}

/** Reads a bound from the message of a failed query. Returns undefined if another error occurred. */
export function readOverBound(code: string, message: string): OverBound | undefined {
  const [, most, what, found] = (code === '22P02' ? PATTERN.exec(message) : null) ?? []
  return what === undefined ? undefined : { what, most: Number(most), found: Number(found) }
}
