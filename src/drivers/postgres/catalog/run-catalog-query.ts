// Reads the rows of the queries of introspection and grading, which contain no caller's input.

/**
 * Runs one of these queries, and returns its rows as text. Throws AppError DATASOURCE_UNAVAILABLE if the connection
 * fails. For an error of the server, throws the AppError that failure() returns.
 */
export type Ask = (sql: string, signal: AbortSignal) => Promise<readonly Row[]>

export type Row = readonly (string | null)[]

/** Returns the text of a column that is never null. Throws TypeError if it is null or missing. */
export function textAt(row: Row, index: number): string {
  const value = row[index]
  if (value === null || value === undefined) throw new TypeError(`a catalog row lacks its column ${index}`)
  return value
}

/** Returns an oid, a count or a float4 estimate. */
export function numberAt(row: Row, index: number): number {
  return Number(textAt(row, index))
}

export function isTrueAt(row: Row, index: number): boolean {
  return row[index] === 't'
}

/** Returns the numbers of an int2vector (`1 2`) or an array of integers (`{1,2}`). */
export function numbersAt(row: Row, index: number): number[] {
  return textAt(row, index)
    .split(/[{},\s]+/)
    .filter((part) => part !== '')
    .map(Number)
}

export function grouped<K, V>(rows: readonly Row[], key: (row: Row) => K, value: (row: Row) => V): Map<K, V[]> {
  const groups = new Map<K, V[]>()
  for (const row of rows) {
    const group = groups.get(key(row))
    if (group === undefined) groups.set(key(row), [value(row)])
    else group.push(value(row))
  }
  return groups
}
