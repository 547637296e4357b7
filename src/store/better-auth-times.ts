// Reads and writes the times of the tables that the sign-in library defines: ISO strings on SQLite, Date objects on
// PostgreSQL. Vitrine's own tables contain ISO strings in both stores.
import type { DialectName } from './migration.ts'

/** Returns the time in ISO 8601, UTC. */
export function isoTime(value: string | Date): string {
  return typeof value === 'string' ? value : value.toISOString()
}

/** Converts epoch milliseconds to the type of these tables. */
export function storedTime(dialect: DialectName, ms: number): string | Date {
  return dialect === 'postgres' ? new Date(ms) : new Date(ms).toISOString()
}
