// Pure: a text that the lexer takes, as asked or as printed, without its literals and comments, for an audit that may not
// keep them.
import { lex } from './lex.ts'
import { Broken, Refusal } from './refusal.ts'
import { PART } from './tokens.ts'

/** A name in backquotes that holds nothing but a path; anything else may hold anything. */
const PLAIN_NAME = /^[\w.-]+\*?$/

/** The tokens, one space between, with ? for every text and number; null where the lexer does not take it. */
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
    if (error instanceof Broken || error instanceof Refusal) return null
    throw error
  }
}
