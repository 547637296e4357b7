/** Returns the key of a table for a Map. Different tables have different keys, whatever characters their names have. */
export function tableKey(schema: string, table: string): string {
  return `${schema.length}:${schema}${table}`
}
