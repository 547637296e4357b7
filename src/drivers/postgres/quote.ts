// Quotes identifiers and strings as SQL. Texts for the server always have quotes, so that no keyword or setting changes
// their meaning.
import { RESERVED_IN_POSTGRES } from '../../reserved-words.ts'

export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Returns a name as a caller must type it: quoted only if needed. */
export function typed(name: string): string {
  return /^[a-z_][a-z0-9_$]*$/.test(name) && !RESERVED_IN_POSTGRES.has(name) ? name : identifier(name)
}

/** Returns a dotted name as a caller must type it: "Sales Ops".orders. */
export function typedPath(names: readonly string[]): string {
  return names.map(typed).join('.')
}

/** Returns a table's name as a caller must type it: without its schema if that is on the login's search_path. */
export function tableTyped(table: { readonly schema: string; readonly name: string }, path: readonly string[]): string {
  return path.includes(table.schema) ? typed(table.name) : typedPath([table.schema, table.name])
}

/** Returns a dotted name with quotes around each part: "schema"."name". */
export function qualified(names: readonly string[]): string {
  return names.map(identifier).join('.')
}

/** Returns 'text', or E'…' if the text has a backslash, so that standard_conforming_strings does not matter. */
export function literal(text: string): string {
  const doubled = text.replaceAll("'", "''")
  return text.includes('\\') ? `E'${doubled.replaceAll('\\', '\\\\')}'` : `'${doubled}'`
}
