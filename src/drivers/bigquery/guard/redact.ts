// Removes literals and comments from a query, as sent or as printed, for an audit that may not store them.
import { lex } from './lex.ts'
import { Malformed, Refusal } from './refusal.ts'
import { PART } from './tokens.ts'

/** Matches a name that is only a path. Other quoted names may contain any text. */
const PLAIN_NAME = /^[\w.-]+\*?$/

/**
 * Returns the tokens separated by one space. Each string becomes ?, and so does each number outside the name of a
 * project. A quoted name that is not only a path becomes `?` in backquotes. Returns null if the lexer refuses the text.
 */
export function redactedSql(text: string): string | null {
  try {
    return lex(text)
      .map((token) => {
        if (token.kind === 'string' || (token.kind === 'number' && token.key !== PART)) return '?'
        if (token.kind === 'quoted' && !PLAIN_NAME.test(token.name)) return '`?`'
        return token.text
      })
      .join(' ')
  } catch (error) {
    if (error instanceof Malformed || error instanceof Refusal) return null
    throw error
  }
}
