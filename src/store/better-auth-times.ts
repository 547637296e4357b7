// In the tables of the sign-in library, a time is an ISO string on SQLite and a Date object on PostgreSQL.
import type { DialectName } from './migration.ts'

/** Returns the time in ISO 8601, in UTC. */
export function isoTime(value: string | Date): string {
  return typeof value === 'string' ? value : value.toISOString()
}

export function storedTime(dialect: DialectName, ms: number): string | Date {
  return dialect === 'postgres' ? new Date(ms) : new Date(ms).toISOString()
}
