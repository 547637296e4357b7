// Quotes names for GoogleSQL.
import { RESERVED } from './guard/tokens.ts'

/** Always in backquotes. Introspection leaves out names that contain a backquote or a backslash. */
export function identifier(name: string): string {
  return `\`${name}\``
}

/** A path as a caller must type it, quoted only where necessary. Only a path of fields contains dots. */
export function typedPath(names: readonly string[]): string {
  const parts = names.flatMap((name) => name.split('.'))
  return parts.map((part) => (isPlain(part) ? part : identifier(part))).join('.')
}

function isPlain(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !RESERVED.has(name.toUpperCase())
}
