// A wildcard such as `events_2024*` also matches tables that nobody exposed, and future tables. So it is allowed only
// inside an exposed family of dated shards, or if every table that it matches is exposed. The printed SQL always
// filters the suffix, so that the wildcard reads only allowed tables.
import type { PseudoColumn } from '../captured-facts.ts'
import type { Exposed, ExposedFamily, ExposedTable } from './exposed.ts'
import type { Source, Suffixes } from './source.ts'
import type { Work } from './work-budget.ts'

/**
 * Characters without a special meaning in a pattern or a string: letters, marks, digits, dashes, spaces and
 * underscores.
 */
const SAFE = /^[\p{L}\p{M}\p{N}_ -]*$/u

/** Returns null if the wildcard may read nothing. `prefix` is the name without the star. */
export function wildcard(exposed: Exposed, work: Work, dataset: string, prefix: string): Source | null {
  if (!SAFE.test(prefix)) return null
  const [families, ids] = [exposed.families(dataset), exposed.ids(dataset)]
  // Comparing eight prefixes counts as one step.
  work.spend((families.length + ids.length) >> 3)
  const own = families.filter((family) => leftOf(family, prefix) !== null)
  const matched = ids.filter((id) => id.startsWith(prefix))
  const hidden = matched.findIndex((id) => exposed.find(dataset, id) === null)
  work.spend(hidden < 0 ? matched.length : hidden)
  const isAll = matched.length > 0 && hidden < 0
  if (!isAll && own.length === 0) return null
  const read = isAll ? families.filter((family) => family.prefix.startsWith(prefix) || own.includes(family)) : own
  const single = isAll ? matched.filter((id) => exposed.tables(dataset).has(id)) : []
  const tables = [
    ...new Set([...read.map(({ of }) => of), ...single.flatMap((id) => exposed.tables(dataset).get(id) ?? [])]),
  ]
  const suffixes = suffixesOf(read, single, prefix)
  const columns = shared(tables, work)
  if (suffixes === null || columns.length === 0) return null
  const root = `${exposed.capture.project}.${dataset}.`
  return {
    dataset,
    table: `${prefix}*`,
    columns,
    names: new Set(columns.map((name) => name.toLowerCase())),
    pseudoColumns: ['_TABLE_SUFFIX', ...sharedPseudo(tables)],
    suffixes,
    closure: [`${root}${prefix}*`, ...single.map((id) => root + id)],
    shards: read.map(({ prefix: start, digits, apart }) => {
      return { prefix: root + start, digits, apart: apart.map((id) => root + id) }
    }),
  }
}

/**
 * Returns how many digits a shard's name has after `wanted`. Returns null if `wanted` is not the prefix of the family,
 * alone or with some digits.
 */
function leftOf({ prefix, digits }: ExposedFamily, wanted: string): number | null {
  const left = prefix.length + digits - wanted.length
  return wanted.startsWith(prefix) && left >= 0 && /^[0-9]*$/.test(wanted.slice(prefix.length)) ? left : null
}

/** Returns null if a name cannot be written in a pattern or a string. */
function suffixesOf(read: readonly ExposedFamily[], single: readonly string[], prefix: string): Suffixes | null {
  const patterns: string[] = []
  for (const family of read) {
    const left = leftOf(family, prefix)
    const head = left === null ? family.prefix.slice(prefix.length) : ''
    if (!SAFE.test(head)) return null
    patterns.push(`^${head}[0-9]{${left ?? family.digits}}$`)
  }
  const list = single.map((id) => id.slice(prefix.length))
  return list.every((suffix) => SAFE.test(suffix)) ? { patterns, list } : null
}

/**
 * In BigQuery, a wildcard has the columns of its newest table. Returns those columns that are exposed there and hidden
 * in none of the other tables. If an older table lacks a column, the column is not hidden there.
 */
function shared(tables: readonly ExposedTable[], work: Work): string[] {
  const newest = tables.reduce<ExposedTable | null>((best, each) => (isNewer(each, best) ? each : best), null)
  if (newest === null) return []
  work.spend(tables.length * newest.columns.length)
  return newest.columns.filter((column) => {
    const name = column.toLowerCase()
    return tables.every(({ names, all }) => names.has(name) || !all.has(name))
  })
}

function sharedPseudo(tables: readonly ExposedTable[]): readonly PseudoColumn[] {
  const [first, ...rest] = tables.map(({ detail }) => detail.pseudoColumns)
  return (first ?? []).filter((pseudo) => rest.every((others) => others.includes(pseudo)))
}

function isNewer(each: ExposedTable, best: ExposedTable | null): boolean {
  if (best === null) return true
  const [a, b] = [each.detail.createdAt ?? 0, best.detail.createdAt ?? 0]
  return a === b ? each.table > best.table : a > b
}
