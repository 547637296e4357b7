// In the tables of better-auth, and in the result of a comparison, a boolean is a number on SQLite.
import type { DialectName } from './migration.ts'

/** Returns false for null and for a missing row. */
export function isTrue(value: number | boolean | null | undefined): boolean {
  return value === true || value === 1
}

export function storedFlag(dialect: DialectName, value: boolean): number | boolean {
  return dialect === 'postgres' ? value : Number(value)
}
