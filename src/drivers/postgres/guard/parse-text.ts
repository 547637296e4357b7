// One text through libpg_query, in whichever thread this is.
import { hasSqlDetails, parseSync } from 'libpg-query'
import type { Parsed } from './parser.ts'
import { fromCodePoints } from './position.ts'

/** Never throws: anything but a tree or a syntax error is `lost`, after which this thread's parser must not be used. */
export function parseText(text: string): Parsed {
  // The parser refuses an empty text by an error of its own.
  if (text.trim() === '') return { kind: 'malformed', why: 'the text is empty', position: 0 }
  try {
    return { kind: 'tree', tree: parseSync(text) }
  } catch (error) {
    const details = hasSqlDetails(error) ? error.sqlDetails : undefined
    if (details === undefined) return { kind: 'lost' }
    if (details.message.startsWith('memory exhausted')) return { kind: 'deep' }
    return { kind: 'malformed', why: details.message, position: fromCodePoints(text, details.cursorPosition) }
  }
}
