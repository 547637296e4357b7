// Pure: a text that the parser took, without its literals, for an audit that may not keep them. It reads as the scanner of
// PostgreSQL does; where that would take more than what stands here, there is no answer rather than a wrong one.

/** A name that needs its quotes for nothing but capitals; what else stands in quotes may be anything. */
const PLAIN_NAME = /^"[A-Za-z_][\w$]*"$/

/** What may stand somewhere, in the order it is looked for, and what is kept of it. */
const PIECES: readonly (readonly [RegExp, (found: string) => string | null])[] = [
  [/[\t\n\v\f\r ]+/y, () => ' '],
  [/--[^\n\r]*/y, () => ' '],
  // Escapes of one's own choice.
  [/[uU]&['"]/y, () => null],
  [/[eE]'(?:[^'\\]|''|\\[^])*'/y, () => '?'],
  // A backslash is one: standard_conforming_strings is on.
  [/[bBxXnN]?'(?:[^']|'')*'/y, () => '?'],
  [/\$([A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$[^]*?\$\1\$/y, () => '?'],
  [/[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y, (word) => word],
  [/\$\d+/y, (parameter) => parameter],
  [/0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+/y, () => '?'],
  [/(?:\d[\d_]*(?:\.(?!\.)[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d[\d_]*)?/y, () => '?'],
  [/"(?:[^"]|"")*"/y, (name) => (PLAIN_NAME.test(name) ? name : '"?"')],
  [/[-+*/<>=~!@#%^&|`?:;,.()[\]]/y, (sign) => sign],
]

/** The text with ? for every text and number, and without its comments; null where that cannot be told. */
export function redactedSql(text: string): string | null {
  let out = ''
  for (let at = 0; at < text.length;) {
    if (text.startsWith('/*', at)) {
      at = commentEnd(text, at)
      out += ' '
      continue
    }
    const found = pieceAt(text, at)
    if (found === null) return null
    out += found.kept
    at += found.length
  }
  return out.trim()
}

function pieceAt(text: string, at: number): { readonly kept: string; readonly length: number } | null {
  for (const [pattern, keep] of PIECES) {
    pattern.lastIndex = at
    const found = pattern.exec(text)?.[0]
    if (found === undefined) continue
    const kept = keep(found)
    return kept === null ? null : { kept, length: found.length }
  }
  return null
}

/** Behind the comment, with those in it; an open one runs to the end. */
function commentEnd(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    if (text.startsWith('/*', at)) depth += 1
    else if (text.startsWith('*/', at)) depth -= 1
    else continue
    at += 1
    if (depth === 0) return at + 1
  }
  return text.length
}
