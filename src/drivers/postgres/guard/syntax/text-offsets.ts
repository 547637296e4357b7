// Converts positions in a text. Trees of the parser count bytes, its errors count code points, and callers count UTF-16
// units.

/** Returns the number of UTF-16 units before a byte offset in the text's UTF-8. */
export function fromBytes(text: string, bytes: number): number {
  let left = bytes
  let units = 0
  while (left > 0 && units < text.length) {
    const code = text.codePointAt(units) ?? 0
    left -= code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4
    units += code < 0x10000 ? 1 : 2
  }
  return units
}

/** Returns the number of UTF-16 units before a number of code points. */
export function fromCodePoints(text: string, points: number): number {
  let units = 0
  for (let n = 0; n < points && units < text.length; n++) units += (text.codePointAt(units) ?? 0) < 0x10000 ? 1 : 2
  return units
}

/** Returns the number of UTF-8 bytes before a number of code points. */
export function toBytes(text: string, points: number): number {
  return Buffer.byteLength(text.slice(0, fromCodePoints(text, points)))
}
