// Names as GoogleSQL reads them.
import { RESERVED } from './guard/tokens.ts'

/** Always in backquotes. Introspection leaves out names that hold a backquote or a backslash. */
export function identifier(name: string): string {
  return `\`${name}\``
}

/** A path as a caller must type it: in backquotes only where a name needs them. No name holds a dot but a path of fields. */
export function typedPath(names: readonly string[]): string {
  const parts = names.flatMap((name) => name.split('.'))
  return parts.map((part) => (isPlain(part) ? part : identifier(part))).join('.')
}

function isPlain(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !RESERVED.has(name.toUpperCase())
}
