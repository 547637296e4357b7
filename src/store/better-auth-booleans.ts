// Reads and writes the booleans of the tables that the sign-in library defines: 0 or 1 on SQLite, booleans on PostgreSQL.
// A comparison that a query selects arrives in the same form. Vitrine's own tables hold 0 or 1 on both.
import type { DialectName } from './migrate.ts'

/** False for null and for a missing row. */
export function isTrue(value: number | boolean | null | undefined): boolean {
  return value === true || value === 1
}

/** Converts a boolean to the type that these tables hold. */
export function storedFlag(dialect: DialectName, value: boolean): number | boolean {
  return dialect === 'postgres' ? value : Number(value)
}
