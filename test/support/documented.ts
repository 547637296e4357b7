// A shop with values, comments and hidden columns, for tests of descriptions. It is connected and partly exposed, but
// not profiled.
import { setTimeout } from 'node:timers/promises'
import { startApp } from './app.ts'
import type { Answer, Person, TestApp, TestAppOptions } from './app.ts'
import { startPostgres } from './postgres.ts'
import type { TestPostgres } from './postgres.ts'

/**
 * Hidden names, hidden values and personal values contain this marker. No response may contain it, except the full
 * schema for managers.
 */
export const CANARY = 'CANARY'

const SQL = `
CREATE TABLE customers (
  id int PRIMARY KEY,
  name text NOT NULL,
  country char(2) NOT NULL,
  email text NOT NULL,
  canary_score text NOT NULL DEFAULT '${CANARY}-low'
);
COMMENT ON TABLE customers IS 'Who buys.';
COMMENT ON COLUMN customers.country IS 'ISO 3166 code.';
INSERT INTO customers SELECT n, 'customer ' || n, (ARRAY['DE','FR'])[n % 2 + 1], '${CANARY}' || n % 3 || '@example.test'
  FROM generate_series(1, 60) AS n;
CREATE TABLE orders (
  id bigint PRIMARY KEY,
  customer_id int NOT NULL REFERENCES customers (id),
  agent_id int,
  status text NOT NULL,
  total_cents int NOT NULL,
  placed_at timestamptz NOT NULL DEFAULT '2026-01-02T03:04:05Z',
  canary_note text NOT NULL DEFAULT '${CANARY}-note'
);
INSERT INTO orders SELECT n, n % 60 + 1, null, (ARRAY['paid','open'])[n % 2 + 1], n * 150 FROM generate_series(1, 300) AS n;
CREATE TABLE canary_payroll (id int PRIMARY KEY, order_id bigint REFERENCES orders (id), salary int);
CREATE TABLE "odd/name.of table Ü" ("a b" int PRIMARY KEY, "c/d" text);
CREATE TABLE doomed (id int PRIMARY KEY, note text);
ANALYZE;
`

export const EXPOSED = [
  { schema: 'public', table: 'customers', columns: ['id', 'name', 'country', 'email'] },
  {
    schema: 'public',
    table: 'orders',
    columns: ['id', 'customer_id', 'agent_id', 'status', 'total_cents', 'placed_at'],
  },
  { schema: 'public', table: 'odd/name.of table Ü', columns: null },
  { schema: 'public', table: 'doomed', columns: null },
]

export interface DocumentedShop extends AsyncDisposable {
  readonly app: TestApp
  readonly postgres: TestPostgres
  readonly database: string
  readonly owner: Person
  readonly key: string
  /** /teams/{teamId}/datasources/{id} */
  readonly at: string
  expose(tables?: readonly object[]): Promise<void>
  sql(text: string): Promise<void>
  /** Returns the state of the job after its end. */
  run(path: string, body?: object): Promise<Answer['json']>
  ended(jobId: string): Promise<Answer['json']>
  put(table: string, body: object): Promise<Answer>
  draft(table: string): Promise<Answer['json']>
  publish(): Promise<void>
  /** Returns the description that an API key gets. */
  described(table: string): Promise<Answer['json']>
}

export async function openDocumentedShop(options: TestAppOptions = {}): Promise<DocumentedShop> {
  const stack = new AsyncDisposableStack()
  const postgres = stack.use(await startPostgres())
  const database = await postgres.createDatabase('shop', SQL)
  const app = stack.use(await startApp(options))
  const owner = await app.person('Olga')
  const teamId = await app.team(owner, 'Shop')
  const login = { host: postgres.host, port: postgres.port, username: postgres.superuser, password: postgres.password }
  const id = await app.datasource(owner, teamId, { ...login, database }, EXPOSED)
  const at = `/teams/${teamId}/datasources/${id}`
  const key = await app.key(owner)
  const find = (tables: readonly { readonly table: string }[], name: string) =>
    tables.find((each) => each.table === name)
  const shop: DocumentedShop = {
    app,
    postgres,
    database,
    owner,
    key,
    at,
    async expose(tables = EXPOSED) {
      await owner.must('PUT', `${at}/exposure`, { tables })
    },
    async sql(text) {
      await postgres.query(database, text)
    },
    async ended(jobId) {
      for (;;) {
        const job = await owner.must('GET', `${at}/jobs/${jobId}`)
        if (job.state !== 'RUNNING' && job.state !== 'QUEUED') return job
        await setTimeout(20)
      }
    },
    async run(path, body = {}) {
      const { jobId } = await owner.must('POST', `${at}/${path}`, body)
      return await shop.ended(jobId)
    },
    put: (table, body) => owner.ask('PUT', `${at}/documentation/public/${encodeURIComponent(table)}`, body),
    draft: async (table) => find((await owner.must('GET', `${at}/documentation`)).tables, table),
    async publish() {
      await owner.must('POST', `${at}/documentation/publish`)
    },
    described: async (table) => find((await app.must('GET', `${at}/schema`, { token: key })).tables, table),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
  return shop
}
