// BigQuery's messages contain positions in the printed SQL, `at [line:column]`. Converts them to positions in the
// caller's SQL.
import type { BigQueryQuery } from '../confined-query.ts'

const PLACE = / ?(?:at )?\[(?:at )?(\d{1,7}):(\d{1,7})\]/g
const TAB = 8

export function withoutPositions(googleText: string): string {
  return googleText.replace(PLACE, '').trim()
}

/** Returns the last position of the message. Returns null if it has no position in the printed SQL. */
export function placeIn(googleText: string, query: BigQueryQuery): number | null {
  const [, line, column] = [...googleText.matchAll(PLACE)].at(-1) ?? []
  if (line === undefined || column === undefined) return null
  const offset = offsetOf(query.text, Number(line), Number(column))
  return offset === null ? null : query.placeOf(offset)
}

/** Lines and columns count from 1. A column is one code point, but a tab extends to the next multiple of eight. */
function offsetOf(text: string, line: number, column: number): number | null {
  let at = 0
  for (let left = line; left > 1; left--) {
    const end = /\r\n|\r|\n/g
    end.lastIndex = at
    const found = end.exec(text)
    if (found === null) return null
    at = found.index + found[0].length
  }
  for (let reached = 1; reached < column;) {
    const code = text.codePointAt(at)
    if (code === undefined || code === 0x0a || code === 0x0d) return null
    reached = code === 0x09 ? reached - ((reached - 1) % TAB) + TAB : reached + 1
    at += code > 0xffff ? 2 : 1
  }
  return at
}
