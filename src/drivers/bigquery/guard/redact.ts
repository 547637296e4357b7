// Removes literals and comments from a query, for an audit that must not store values.
import { lex } from './lex.ts'
import { Malformed, Refusal } from './refusal.ts'
import { PART } from './tokens.ts'

/** A quoted name that is only a path. Other quoted names may contain any text. */
const PLAIN_NAME = /^[\w.-]+\*?$/

/**
 * Returns the tokens with one space between them. Each string and number becomes ?, except numbers in the name of a
 * project. A quoted name that does not match PLAIN_NAME becomes `?` in backquotes. Returns null if the lexer refuses
 * the query.
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
