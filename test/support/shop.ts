// A small shop in a real database, connected to a running service and partly exposed, for tests over HTTP.
import { startApp } from './app.ts'
import type { Person, TestApp, TestAppOptions } from './app.ts'
import { startPostgres } from './postgres.ts'
import type { TestPostgres } from './postgres.ts'

const SQL = `
CREATE TABLE customers (
  id int PRIMARY KEY,
  name text NOT NULL,
  country char(2),
  email text NOT NULL DEFAULT 'HIDDEN-email'
);
COMMENT ON TABLE customers IS 'Who buys.';
COMMENT ON COLUMN customers.country IS 'ISO 3166 code.';
INSERT INTO customers (id, name, country) SELECT n, 'customer ' || n, 'DE' FROM generate_series(1, 50) AS n;
CREATE TABLE orders (
  id bigint PRIMARY KEY,
  customer_id int NOT NULL REFERENCES customers (id),
  total numeric(10, 2) NOT NULL,
  placed_at timestamptz NOT NULL DEFAULT '2026-01-02T03:04:05Z'
);
INSERT INTO orders (id, customer_id, total) SELECT n, n % 50 + 1, n * 1.5 FROM generate_series(1, 300) AS n;
CREATE TABLE payroll (id int PRIMARY KEY, salary int, note text DEFAULT 'HIDDEN-note');
INSERT INTO payroll (id, salary) VALUES (1, 1000);
CREATE VIEW recent AS SELECT id, total FROM orders;
ANALYZE;
`

const EXPOSED = [
  { schema: 'public', table: 'customers', columns: ['id', 'name', 'country'] },
  { schema: 'public', table: 'orders', columns: null },
  { schema: 'public', table: 'recent', columns: null },
]

export interface Shop extends AsyncDisposable {
  readonly app: TestApp
  readonly postgres: TestPostgres
  readonly database: string
  readonly owner: Person
  readonly key: string
  readonly teamId: string
  readonly datasourceId: string
  /** /teams/{teamId}/datasources/{id} */
  readonly at: string
  /** The fields of a datasource on this database. */
  readonly spec: object
  query(sql: string, token?: string): ReturnType<TestApp['ask']>
}

export async function openShop(options: TestAppOptions = {}): Promise<Shop> {
  const stack = new AsyncDisposableStack()
  const postgres = stack.use(await startPostgres())
  const database = await postgres.createDatabase('shop', SQL)
  const app = stack.use(await startApp(options))
  const owner = await app.person('Olga')
  const teamId = await app.team(owner, 'Shop')
  const spec = {
    name: 'shop',
    host: postgres.host,
    port: postgres.port,
    database,
    username: postgres.superuser,
    password: postgres.password,
  }
  const datasourceId = await app.datasource(owner, teamId, spec, EXPOSED)
  const key = await app.key(owner)
  const at = `/teams/${teamId}/datasources/${datasourceId}`
  return {
    app,
    postgres,
    database,
    owner,
    key,
    teamId,
    datasourceId,
    at,
    spec,
    query: (sql, token = key) => app.ask('POST', `${at}/query`, { token, body: { sql } }),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}
