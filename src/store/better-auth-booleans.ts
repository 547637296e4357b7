// Reads and writes the booleans of the tables that the sign-in library defines: 0 or 1 on SQLite, booleans on
// PostgreSQL. The result of a comparison in a select list has the same types. Vitrine's own tables contain 0 or 1 in
// both stores.
import type { DialectName } from './migration.ts'

/** Returns false for null and for a missing row. */
export function isTrue(value: number | boolean | null | undefined): boolean {
  return value === true || value === 1
}

/** Converts a boolean to the type of these tables. */
export function storedFlag(dialect: DialectName, value: boolean): number | boolean {
  return dialect === 'postgres' ? value : Number(value)
}
