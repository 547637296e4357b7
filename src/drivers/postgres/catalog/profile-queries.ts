// Writes the statements of a profile: for the size of a table, the server's statistics, and a sample of rows. They name
// only the table and its exposed columns.
import { identifier, literal, qualified } from '../quote.ts'
import type { ReadColumn } from './profile-columns.ts'

interface Place {
  readonly schema: string
  readonly table: string
}

/**
 * Returns SQL for the size of a table with its partitions and child tables: its pages now, its pages and rows at the
 * last ANALYZE, whether all parts were analysed, and whether it has parts. Returns no row if the table is gone.
 */
export function sizeSql({ schema, table }: Place): string {
  return `WITH RECURSIVE part(oid) AS (
  SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = ${literal(schema)} AND c.relname = ${literal(table)}
  UNION SELECT i.inhrelid FROM part p JOIN pg_catalog.pg_inherits i ON i.inhparent = p.oid)
SELECT sum(coalesce(pg_catalog.pg_relation_size(c.oid), 0)) / pg_catalog.current_setting('block_size')::int8,
  sum(greatest(c.relpages, 0)), sum(CASE WHEN c.relkind = 'p' THEN 0 ELSE greatest(c.reltuples, 0) END),
  bool_and(c.reltuples >= 0 OR c.relkind = 'p'), count(*) > 1
FROM part p JOIN pg_catalog.pg_class c ON c.oid = p.oid HAVING count(*) > 0`
}

/** Longer lists of common values are not read. */
const STATISTICS_BYTES = 65_536

/** Returns SQL for the statistics (pg_stats) that the login may see. `inherited` includes child tables. */
export function statisticsSql({ schema, table }: Place, columns: readonly string[], inherited: boolean): string {
  const values = 'pg_catalog.array_to_json(s.most_common_vals::text::text[])::text'
  const ends = `s.histogram_bounds::text::text[]`
  return `SELECT s.attname, s.null_frac, s.n_distinct, s.correlation,
  CASE WHEN pg_catalog.octet_length(s.most_common_vals::text) < ${STATISTICS_BYTES} THEN ${values} END,
  pg_catalog.array_to_json(s.most_common_freqs)::text,
  CASE WHEN pg_catalog.octet_length(s.histogram_bounds::text) < ${STATISTICS_BYTES} THEN
    pg_catalog.json_build_array((${ends})[1], (${ends})[pg_catalog.array_length(${ends}, 1)])::text END,
  300 * coalesce(nullif(a.attstattarget, -1), pg_catalog.current_setting('default_statistics_target')::int4)
FROM pg_catalog.pg_stats s
JOIN pg_catalog.pg_namespace n ON n.nspname = s.schemaname
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = s.tablename
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = s.attname
WHERE s.schemaname = ${literal(schema)} AND s.tablename = ${literal(table)} AND s.inherited = ${inherited}
  AND s.attname IN (${columns.map(literal).join(', ')})`
}

/** Returns SQL that reads rows from `percent` of the table's pages, or from all if `percent` is null. */
export function sampleSql(
  { schema, table }: Place,
  columns: readonly ReadColumn[],
  { percent, limit }: { readonly percent: number | null; readonly limit: number },
): string {
  const list = columns.map((column, n) => `${column.sql} AS ${identifier(`c${n}`)}`).join(', ')
  const part = percent === null ? '' : ` TABLESAMPLE SYSTEM (${percent}) REPEATABLE (1)`
  return `SELECT ${list} FROM ${qualified([schema, table])}${part} LIMIT ${limit}`
}
