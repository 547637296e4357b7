import { AppError } from '../errors.ts'

export function notIntrospected(): AppError {
  return new AppError(
    'NOT_CONNECTED',
    'This datasource has not been introspected yet. A manager of the team can introspect it (POST …/introspect).',
  )
}

/** Throws NOT_CONNECTED before the first introspection. */
export function requireIntrospected(row: { readonly catalog_version: number }): void {
  if (row.catalog_version === 0) throw notIntrospected()
}

/** Throws DATASOURCE_DISABLED. */
export function requireEnabled(row: { readonly status: string }): void {
  if (row.status !== 'DISABLED') return
  throw new AppError(
    'DATASOURCE_DISABLED',
    'This datasource is disabled. A manager of the team can enable it (POST …/enable).',
  )
}

/** Throws DATASOURCE_DISABLED, then NOT_CONNECTED before the first introspection. */
export function requireUsable(row: { readonly status: string; readonly catalog_version: number }): void {
  requireEnabled(row)
  requireIntrospected(row)
}
