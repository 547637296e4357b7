// Generates GRANT commands (or their equivalent) with which the database itself refuses hidden tables and columns. A
// person reads and runs them. Reads only the stored catalog, not the database.
import type { Agreement } from '../drivers/driver.ts'
import type { Catalogs } from '../exposure/catalog-cache.ts'
import { notIntrospected } from '../exposure/require-usable.ts'
import type { Reached } from './require-reach.ts'
import { configOf } from './datasource-rows.ts'

/** Throws NOT_CONNECTED before the first introspection. */
export async function getExposureGrants(
  deps: { readonly catalogs: Catalogs },
  { row, driver }: Pick<Reached, 'row' | 'driver'>,
): Promise<Agreement> {
  const [full, exposed] = await Promise.all([deps.catalogs.full(row), deps.catalogs.exposed(row)])
  if (full === null || exposed === null) throw notIntrospected()
  const { database, username } = row
  return driver.agreement({ full, exposed, database, username, config: configOf(row) })
}
