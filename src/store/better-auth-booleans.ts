// In the tables of the sign-in library, and in the result of a comparison, a boolean is 0 or 1 on SQLite and a boolean
// on PostgreSQL.
import type { DialectName } from './migration.ts'

/** Returns false for null and for a missing row. */
export function isTrue(value: number | boolean | null | undefined): boolean {
  return value === true || value === 1
}

export function storedFlag(dialect: DialectName, value: boolean): number | boolean {
  return dialect === 'postgres' ? value : Number(value)
}
