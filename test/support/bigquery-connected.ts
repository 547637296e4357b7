// Connects a driver to the BigQuery double, introspects the project and exposes all tables.
import assert from 'node:assert/strict'
import { createBigQueryDriver, type BigQueryOptions } from '../../src/drivers/bigquery/driver.ts'
import type { Confined } from '../../src/drivers/confined.ts'
import type { Catalog, Connection, Driver, Limits, Rows, SettingsInput } from '../../src/drivers/driver.ts'
import { AppError } from '../../src/errors.ts'
import { cut } from '../../src/exposure/cut-catalog.ts'
import { TestDoor } from './bigquery-door.ts'
import { PROJECT, startShop, type Known } from './bigquery-shop.ts'
import type { BigQueryDouble, DoubleOptions } from './bigquery.ts'

export const WIDE: Limits = { rowCap: 10_000, maxResponseBytes: 50_000_000, timeoutMs: 10_000, maxCost: 1e9 }

export interface ConnectedOptions {
  readonly known?: readonly Known[]
  readonly double?: Partial<DoubleOptions>
  readonly driver?: BigQueryOptions
  readonly config?: object
  /** Connects to the double’s own address without a token endpoint, as to an emulator. */
  readonly emulator?: boolean
  /** The exposed columns of each table. By default, all columns are exposed. */
  readonly columns?: readonly string[]
}

export class ConnectedBigQuery implements AsyncDisposable {
  readonly door: TestDoor
  readonly double: BigQueryDouble
  readonly driver: Driver
  readonly settings: SettingsInput
  readonly catalog: Catalog
  readonly exposed: Catalog
  readonly connection: Connection
  readonly #stack: AsyncDisposableStack

  constructor(
    parts: Pick<ConnectedBigQuery, 'door' | 'double' | 'driver' | 'settings' | 'catalog' | 'exposed' | 'connection'>,
    stack: AsyncDisposableStack,
  ) {
    this.door = parts.door
    this.double = parts.double
    this.driver = parts.driver
    this.settings = parts.settings
    this.catalog = parts.catalog
    this.exposed = parts.exposed
    this.connection = parts.connection
    this.#stack = stack
  }

  async confined(sql: string, limits: Limits = WIDE, params?: unknown): Promise<Confined> {
    const body = this.driver.read({ sql, ...(params !== undefined && { params }) })
    const verdict = await this.driver.confine(body, this.exposed, limits, soon())
    assert.equal(verdict.kind, 'confined', JSON.stringify(verdict))
    return verdict.kind === 'confined' ? verdict.query : assert.fail()
  }

  async run(sql: string, limits: Limits = WIDE, signal: AbortSignal = soon()): Promise<Rows> {
    return await this.connection.run(await this.confined(sql, limits), limits, signal)
  }

  async refusal(sql: string, limits: Limits = WIDE, signal?: AbortSignal): Promise<AppError> {
    const error: unknown = await this.run(sql, limits, signal).then(
      (rows) => assert.fail(`answered ${String(rows.rows)}`),
      (thrown: unknown) => thrown,
    )
    assert.ok(error instanceof AppError, String(error))
    return error
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}

export function soon(): AbortSignal {
  return AbortSignal.timeout(60_000)
}

export async function connectBigQuery(options: ConnectedOptions = {}): Promise<ConnectedBigQuery> {
  await using stack = new AsyncDisposableStack()
  const door = new TestDoor()
  const { emulator } = options
  const double = stack.use(await startShop(options.known, { ...(emulator !== true && { door }), ...options.double }))
  const connector = emulator === true ? {} : { connector: double.connector }
  const driver = stack.use(await createBigQueryDriver({ ...connector, allowEndpoint: true, ...options.driver }))
  const settings: SettingsInput = {
    connectionMode: 'SERVICE_ACCOUNT',
    database: PROJECT,
    config: { ...(emulator === true && { apiEndpoint: double.url, emulator }), ...options.config },
    secrets: emulator === true ? {} : { serviceAccountKey: door.keyFile() },
  }
  const connection = stack.use(await driver.connect(driver.settings(settings), { allowPrivateHosts: true }, soon()))
  const catalog = await connection.introspect(soon())
  const exposed = cut(
    catalog,
    catalog.tables.map(({ schema, table, columns }) => {
      return { schema, table, columns: options.columns ?? columns.map(({ name }) => name) }
    }),
  )
  double.requests.length = 0
  return new ConnectedBigQuery({ door, double, driver, settings, catalog, exposed, connection }, stack.move())
}
