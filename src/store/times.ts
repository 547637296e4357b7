// Times as the tables of sign-in hold them: ISO texts on SQLite, the driver's dates on PostgreSQL.

/** ISO 8601, UTC. */
export function isoTime(value: string | Date): string {
  return typeof value === 'string' ? value : value.toISOString()
}
