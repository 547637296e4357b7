// A table as the key of a map.

/** One text for a schema and a name; no two pairs share it, whatever they hold. */
export function tableKey(schema: string, table: string): string {
  return `${schema.length}:${schema}${table}`
}
