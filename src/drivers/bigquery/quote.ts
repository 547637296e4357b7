import { RESERVED_IN_GOOGLESQL } from '../../reserved-words.ts'

/** Nothing needs escaping: a name with a backquote or a backslash cannot be exposed, and the lexer refuses it. */
export function identifier(name: string): string {
  return `\`${name}\``
}

/**
 * Returns a path as a caller must write it, with backquotes only if necessary. A name with dots is a path of nested
 * fields, so each part is quoted separately.
 */
export function typedPath(names: readonly string[]): string {
  const parts = names.flatMap((name) => name.split('.'))
  return parts.map(typedName).join('.')
}

/** Returns a name as a caller must write it, with backquotes only if necessary. */
export function typedName(name: string): string {
  return isPlain(name) ? name : identifier(name)
}

function isPlain(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !RESERVED_IN_GOOGLESQL.has(name.toUpperCase())
}
