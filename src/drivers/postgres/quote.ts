// Identifiers and strings as SQL: always quoted, whatever they hold, so that no list of keywords and no setting decides
// what they mean.

/** "name". */
export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Dotted: "schema"."name". */
export function qualified(names: readonly string[]): string {
  return names.map(identifier).join('.')
}

/** 'text', or E'…' where there is a backslash: the same under either standard_conforming_strings. */
export function literal(text: string): string {
  const doubled = text.replaceAll("'", "''")
  return text.includes('\\') ? `E'${doubled.replaceAll('\\', '\\\\')}'` : `'${doubled}'`
}
