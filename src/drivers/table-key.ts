// Makes the key of a table in a map.

/**
 * Returns one string for a schema and a table. Different pairs have different keys, even if names contain special
 * characters.
 */
export function tableKey(schema: string, table: string): string {
  return `${schema.length}:${schema}${table}`
}
