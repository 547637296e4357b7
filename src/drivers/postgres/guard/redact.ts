// Removes literals from a parsed query text, for audits that must not store them. A pure function: it uses the guard's
// scanner and returns null for a token that no query can contain.
import { Scanner } from './syntax/scanner.ts'

/** A name that needs quotes only because of its capitals. Other quoted names may contain any text. */
const PLAIN_NAME = /^"[A-Za-z_][\w$]*"$/
const SIGN = /^[-+*/<>=~!@#%^&|`?:;,.()[\]]+$/

/** Returns the text without comments, and with ? for each string and number. Returns null if a token is unknown. */
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
