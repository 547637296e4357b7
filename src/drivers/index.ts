// The kinds of database that this build supports. Only composition-root.ts imports this file.
import { createBigQueryDriver, type BigQueryOptions } from './bigquery/driver.ts'
import type { Driver } from './driver.ts'
import type { DatasourceType } from './datasource-type.ts'
import { createMongoDriver } from './mongodb/driver.ts'
import { createPostgresDriver } from './postgres/driver.ts'

const FACTORIES = {
  POSTGRES: createPostgresDriver,
  MONGODB: createMongoDriver,
  BIGQUERY: createBigQueryDriver,
} as const satisfies Record<DatasourceType, (options: DriverOptions) => Promise<Driver>>

/** What the operator permits. */
export type DriverOptions = BigQueryOptions

export async function openDrivers(
  options: DriverOptions = {},
): Promise<ReadonlyMap<DatasourceType, Driver> & AsyncDisposable> {
  const drivers = await Promise.all(Object.values(FACTORIES).map((create) => create(options)))
  const byType = new Map<DatasourceType, Driver>(drivers.map((driver) => [driver.type, driver]))
  return Object.assign(byType, {
    [Symbol.asyncDispose]: async () => {
      for (const driver of drivers) await driver[Symbol.asyncDispose]()
    },
  })
}
