// Finds the cells of a row of JSON that was written here: only strings, brackets and commas matter.

export interface Cell {
  readonly start: number
  readonly end: number
}

/** The cells between a row's brackets. */
export function cellsOf(bytes: Buffer, start: number, end: number): Cell[] {
  const cells: Cell[] = []
  let depth = 0
  let from = start
  for (let at = start; at < end; at++) {
    const byte = bytes[at]
    if (byte === 0x22) at = endOfString(bytes, at)
    else if (byte === 0x5b || byte === 0x7b) depth++
    else if (byte === 0x5d || byte === 0x7d) depth--
    else if (byte === 0x2c && depth === 0) {
      cells.push({ start: from, end: at })
      from = at + 1
    }
  }
  if (end > start) cells.push({ start: from, end })
  return cells
}

/** Where the quote is that ends the string that begins at `at`. */
function endOfString(bytes: Buffer, at: number): number {
  for (let i = at + 1; ; i++) {
    if (bytes[i] === 0x5c) i++
    else if (bytes[i] === 0x22 || i >= bytes.length) return i
  }
}
