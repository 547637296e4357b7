// Estimates the cost of a query in the units of PostgreSQL's planner: by EXPLAIN, or by an upper bound from the size of
// the query's table.
import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { AppError } from '../../../errors.ts'
import type { CostBound } from '../confined-query.ts'
import { literal } from '../quote.ts'

export interface TableSize {
  readonly pages: number
  readonly tuples: number
  readonly pageCost: number
  readonly tupleCost: number
  readonly operatorCost: number
}

/** Returns the EXPLAIN statement for a printed text. It computes the query's constants, so it needs a timeout too. */
export function explainSql(text: string): string {
  return `EXPLAIN (FORMAT JSON) ${text}`
}

const Plan = z.tuple([z.object({ Plan: z.object({ 'Total Cost': z.number() }) })])

/** Reads the cost from the answer to explainSql(). */
export function planCost(answer: readonly (readonly (string | null)[])[]): number {
  const plan: unknown = JSON.parse(answer[0]?.[0] ?? 'null')
  return Plan.parse(plan)[0].Plan['Total Cost']
}

/**
 * Returns SQL for the size of one table or materialized view. Returns no row if a query may cost more than the size
 * suggests: the table is partitioned, has child tables, is in another tablespace, or has virtual generated columns or
 * row-level security.
 */
export function sizeSql(at: { readonly schema: string; readonly table: string }): string {
  return `SELECT pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::int8, c.relpages, c.reltuples,
  greatest(pg_catalog.current_setting('seq_page_cost')::float8, pg_catalog.current_setting('random_page_cost')::float8),
  pg_catalog.current_setting('cpu_tuple_cost'), pg_catalog.current_setting('cpu_operator_cost')
${fromPlainTable(at)}`
}

function fromPlainTable(at: { readonly schema: string; readonly table: string }): string {
  return `FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ${literal(at.schema)} AND c.relname = ${literal(at.table)} AND c.relkind IN ('r', 'm')
  AND NOT c.relhassubclass AND NOT c.relrowsecurity AND c.reltablespace = 0
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attgenerated = 'v')`
}

/** Random, so that a caller's query cannot fail with the same text. */
const MARK = `vitrine-${randomBytes(8).toString('hex')}`

/**
 * Returns a statement that fails if the size of the table no longer bounds the cost, for example because of row-level
 * security. The query after it then does not run.
 */
export function plainCheckSql(at: { readonly schema: string; readonly table: string }): string {
  return `SELECT CASE WHEN found.n = 1 THEN 0 ELSE CAST(pg_catalog.concat('${MARK} ', found.n) AS pg_catalog.int4) END
FROM (SELECT pg_catalog.count(*) AS n ${fromPlainTable(at)}) AS found`
}

/** Returns whether the message is from a failed statement of plainCheckSql(). */
export function isNoLongerPlain(message: string): boolean {
  return message.includes(MARK)
}

export function readSize(answer: readonly (readonly (string | null)[])[]): TableSize | null {
  const row = answer[0]?.map(Number)
  if (row === undefined) return null
  const [blocks = 0, relpages = 0, reltuples = 0, pageCost = 0, tupleCost = 0, operatorCost = 0] = row
  // The planner estimates rows in the same way: the current pages, at least ten, times the rows of a page at the last
  // ANALYZE. Before the first ANALYZE, a page counts as full (291 rows).
  const pages = Math.max(blocks, 10)
  const density = relpages > 0 && reltuples >= 0 ? reltuples / relpages : 291
  return { pages, tuples: Math.max(1, density * pages), pageCost, tupleCost, operatorCost }
}

// The procost of allowed functions is at most 100, in units of cpu_operator_cost.
const OPERATORS_EACH = 100

/** Returns a cost that no plan exceeds: to read the whole table, and to sort all of it on disk. */
export function costBound(bound: CostBound, size: TableSize): number {
  const { pages, tuples, pageCost, tupleCost, operatorCost } = size
  const scan = pages * pageCost + tuples * (3 * tupleCost + bound.operations * OPERATORS_EACH * operatorCost)
  if (!bound.sorts) return scan
  const compared = tuples * Math.log2(tuples + 2) * operatorCost * 2 * (bound.operations + 1)
  return scan + compared + 24 * pages * pageCost + 4 * tuples * tupleCost
}

/** Throws AppError QUERY_DENIED if the estimate exceeds the limit. */
export function checkCost(estimate: number, limit: number): void {
  if (estimate <= limit) return
  const message = `The plan cost of this query is estimated at ${Math.round(estimate)}, over the limit of ${limit}.`
  throw new AppError('QUERY_DENIED', message, {
    extra: {
      blocked: { kind: 'cost', name: 'plan cost' },
      hint: 'Read fewer rows: add conditions to WHERE, join fewer tables, and give each join a condition.',
      estimate,
      limit,
    },
  })
}
