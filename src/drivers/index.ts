// The kinds of database this build serves: one line each. Only app.ts imports this.
import type { DatasourceType, Driver } from './driver.ts'
import { createMongoDriver } from './mongodb/driver.ts'
import { createPostgresDriver } from './postgres/driver.ts'

const FACTORIES = {
  POSTGRES: createPostgresDriver,
  MONGODB: createMongoDriver,
} as const satisfies Partial<Record<DatasourceType, () => Promise<Driver>>>

/** Every driver, ready to judge. Disposing it ends what they hold. */
export async function openDrivers(): Promise<ReadonlyMap<DatasourceType, Driver> & AsyncDisposable> {
  const drivers = await Promise.all(Object.values(FACTORIES).map((create) => create()))
  const byType = new Map<DatasourceType, Driver>(drivers.map((driver) => [driver.type, driver]))
  return Object.assign(byType, {
    [Symbol.asyncDispose]: async () => {
      for (const driver of drivers) await driver[Symbol.asyncDispose]()
    },
  })
}
