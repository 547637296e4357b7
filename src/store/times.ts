// Converts times of the sign-in tables: ISO strings on SQLite, Date objects on PostgreSQL.

/** ISO 8601, UTC. */
export function isoTime(value: string | Date): string {
  return typeof value === 'string' ? value : value.toISOString()
}
