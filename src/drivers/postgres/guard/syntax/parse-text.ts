// Parses one text with libpg_query, in the current thread.
import { hasSqlDetails, parseSync } from 'libpg-query'
import type { Parsed } from './parser.ts'
import { fromCodePoints } from './text-offsets.ts'

/** The maximum length of a token that a message repeats. */
const QUOTED_MAX = 60

/** Never throws. After `lost`, the parser of this thread must not be used again. */
export function parseText(text: string): Parsed {
  // For an empty text, libpg_query throws an error that is no syntax error.
  if (text.trim() === '') return { kind: 'malformed', why: 'the text is empty', position: 0 }
  try {
    return { kind: 'tree', tree: parseSync(text) }
  } catch (error) {
    const details = hasSqlDetails(error) ? error.sqlDetails : undefined
    if (details === undefined) return { kind: 'lost' }
    if (details.message.startsWith('memory exhausted')) return { kind: 'deep' }
    return {
      kind: 'malformed',
      why: shortened(details.message),
      position: fromCodePoints(text, details.cursorPosition),
    }
  }
}

/** Shortens the token in the parser's message, which may have 64 KiB. */
function shortened(message: string): string {
  const [from, to] = [message.indexOf('"'), message.lastIndexOf('"')]
  if (to - from <= QUOTED_MAX) return message
  return `${message.slice(0, from + 1 + QUOTED_MAX)}…"${message.slice(to + 1, to + 1 + QUOTED_MAX)}`
}
