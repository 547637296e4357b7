// Removes literals from a query text, for audits that must not store them.
import { Scanner } from './syntax/scanner.ts'

/** A quoted name of plain characters. Any other quoted name may contain a value, so it is removed. */
const PLAIN_NAME = /^"[A-Za-z_][\w$]*"$/
const SIGN = /^[-+*/<>=~!@#%^&|`?:;,.()[\]]+$/

/**
 * Returns the text without comments, with ? for each string and number, and with "?" for each unusual quoted name.
 * Returns null if a string or quoted name has no end, or if no query can contain a token of the text.
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
