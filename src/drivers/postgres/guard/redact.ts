// Removes the literals from a query text for the audit, because some teams do not want them there.
import { Scanner } from './syntax/scanner.ts'

/** Other quoted names are removed, because they may contain values. */
const PLAIN_NAME = /^"[A-Za-z_][\w$]*"$/
const SIGN = /^[-+*/<>=~!@#%^&|`?:;,.()[\]]+$/

/**
 * Returns the text without comments, with ? for each string and number, and "?" for each unusual quoted name. Returns
 * null if a quote is not closed, or if the text has a character that no query can have.
 */
export function redactedSql(text: string): string | null {
  const scanner = new Scanner(text)
  const out: string[] = []
  while (scanner.next()) {
    const kept = keptOf(scanner, text)
    if (kept === null) return null
    out.push(kept)
  }
  return out.join('').trim()
}

function keptOf({ kind, start, end, isOpen }: Scanner, text: string): string | null {
  switch (kind) {
    case 'space':
    case 'line comment':
    case 'block comment':
      return ' '
    case 'string':
      return isOpen ? null : '?'
    case 'number':
      return '?'
    case 'word':
    case 'parameter':
      return text.slice(start, end)
    case 'quoted name': {
      const name = text.slice(start, end)
      return isOpen ? null : PLAIN_NAME.test(name) ? name : '"?"'
    }
    case 'sign': {
      const sign = text.slice(start, end)
      return SIGN.test(sign) ? sign : null
    }
    default:
      return kind satisfies never
  }
}
