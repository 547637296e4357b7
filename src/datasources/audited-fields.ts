// The audit records the values of public fields of a datasource, and for a secret, only whether it is set.
import { changesOf, flattened, NOT_SET, SET, type Changes, type Fields } from '../audit/recorded-changes.ts'
import { configOf, type DatasourceRow } from './datasource-rows.ts'

/** Each secret by its field, or another value that changes when the secret changes. */
type Secrets = Readonly<Record<string, unknown>>

/** `before` is null for a new datasource, and `after` is null for a deleted one. */
export function datasourceChanges(before: DatasourceRow | null, after: DatasourceRow | null): Changes {
  return changesOf(before && fieldsOf(before), after && fieldsOf(after))
}

export function secretChanges(before: Secrets, after: Secrets): Changes {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
  return Object.fromEntries(
    names
      .filter((name) => before[name] !== after[name])
      .map((name) => [name, { from: stateOf(before[name]), to: stateOf(after[name]) }]),
  )
}

function stateOf(secret: unknown): string {
  return secret === undefined ? NOT_SET : SET
}

function fieldsOf(row: DatasourceRow): Fields {
  return {
    name: row.name,
    type: row.type,
    status: row.status,
    connectionMode: row.connection_mode,
    host: row.host,
    port: row.port,
    database: row.database,
    username: row.username,
    sslMode: row.ssl_mode,
    ...flattened('config', configOf(row)),
    'config.reintrospectHours': row.reintrospect_hours,
    accessMode: row.access_mode,
    minRole: row.min_role,
  }
}
