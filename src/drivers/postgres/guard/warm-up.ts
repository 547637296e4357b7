// V8 compiles the parser and the guard at their first use, which slows the first queries down. So the guard confines
// some sample queries when the service starts to listen. Requests are answered in between.
import { setImmediate } from 'node:timers/promises'
import type { Catalog, CatalogColumn } from '../../driver.ts'
import { CAPTURE_VERSION, type ColumnDetail, type PostgresCapture, type TableDetail } from '../captured-facts.ts'
import { confine } from './confine.ts'
import type { Parser } from './syntax/parser.ts'

const QUERIES = [
  'SELECT 1',
  'SELECT * FROM orders ORDER BY id LIMIT 10',
  "SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = o.customer_id WHERE o.total > 10.5 AND c.name ILIKE 'a%'",
  'SELECT c.id, c.name, count(*) AS n, sum(o.total) FROM customers c LEFT JOIN orders o USING (id) GROUP BY c.id ORDER BY n DESC',
  "WITH m AS (SELECT date_trunc('month', at) AS m, sum(total) AS s FROM orders GROUP BY 1) SELECT m, s, lag(s) OVER (ORDER BY m) FROM m",
  "SELECT CASE WHEN total > 5 THEN 'big' ELSE coalesce(note, '-') END, total::int FROM orders WHERE id IN (1, 2) AND at BETWEEN '2024-01-01' AND now()",
  'SELECT id FROM orders UNION ALL SELECT (SELECT max(id) FROM customers) ORDER BY id OFFSET 1',
  'SELECT secret FROM orders',
]

const ROUNDS = 12
const WARM_MS = 80

/** Confines the queries up to 12 times, for at most 80 ms. Ends early if the signal aborts. */
export async function warmUp(parser: Parser, signal: AbortSignal): Promise<void> {
  const limits = { rowCap: 100, maxResponseBytes: 1, timeoutMs: 1, maxCost: 1 }
  let worked = 0
  for (let round = 0; round < ROUNDS; round++) {
    for (const text of QUERIES) {
      await setImmediate()
      if (signal.aborted || worked >= WARM_MS) return
      const began = performance.now()
      await confine(parser, { text, limit: null }, catalog(), limits, signal)
      worked += performance.now() - began
    }
  }
}

function catalog(): Catalog {
  const capture: PostgresCapture = {
    version: CAPTURE_VERSION,
    serverVersion: 180000,
    database: 'warm',
    searchPath: ['public'],
    trustedSchemas: [],
    extensions: [],
    types: [],
    implicit: { extensions: [], schemas: [], typesUpTo: 0, judged: [], digest: '' },
    comparesByIcu: false,
  }
  const names = ['id', 'customer_id', 'name', 'total', 'note', 'at']
  const table = (name: string): Catalog['tables'][number] => {
    const detail: TableDetail = { kind: 'r', oid: 1, pages: 1, tuples: 1, primaryKey: ['id'] }
    return {
      ...{ schema: 'public', table: name, kind: 'table', description: null, estimatedRows: 1, warnings: [], detail },
      columns: names.map((name, at) => column(name, at + 1)),
    }
  }
  return { capturedAt: '', tables: [table('orders'), table('customers')], capture }
}

function column(name: string, number: number): CatalogColumn {
  const detail: ColumnDetail = { number, typeOid: 25, type: { schema: 'pg_catalog', name: 'text' }, typmod: -1 }
  const rest = { nullable: true, primaryKey: name === 'id', references: null, description: null, unexposable: null }
  return { name, type: 'text', ...rest, detail }
}
