// Some bounds can be checked only by the database. If such a bound is exceeded, the printed query casts a marker string
// to a number. The cast fails, and the database's error message repeats the marker, which names the bound.

const MARK = 'vitrine bound:'
const PATTERN = /vitrine bound: (\d{1,12}) ([a-z_]+|LIKE) (\d{1,20})"/

/** Returns the beginning of the marker. The size that was found follows. */
export function overBoundText(what: string, most: number): string {
  return `${MARK} ${most} ${what} `
}

export interface OverBound {
  /** What is too large: a function, LIKE, or a word such as `comparison` or `except`. */
  readonly what: string
  readonly most: number
  readonly found: number
}

/** Reads the marker in the message of a failed query. Returns undefined for another error. */
export function readOverBound(code: string, message: string): OverBound | undefined {
  const [, most, what, found] = (code === '22P02' ? PATTERN.exec(message) : null) ?? []
  return what === undefined ? undefined : { what, most: Number(most), found: Number(found) }
}
