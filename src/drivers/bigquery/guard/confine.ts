// Turns a caller's GoogleSQL into SQL that can read only exposed data, or refuses it. The guard lexes, parses, resolves
// names and prints. It uses no database, no clock and no I/O, and refuses everything that it does not know.
import { seal } from '../../confined.ts'
import type { Catalog, Limits, QueryBody, Verdict } from '../../driver.ts'
import type { BigQueryQuery, ReadTable } from '../confined-query.ts'
import { boundOf, unbound } from '../params.ts'
import { Families } from '../shard-families.ts'
import { ColumnSets } from './column-sets.ts'
import { PrintedColumns } from './printed-columns.ts'
import { exposedOf, isLikeOurs, type Exposed } from './exposed.ts'
import { lex } from './lex.ts'
import { parse } from './parse.ts'
import { print } from './print.ts'
import { Malformed, refusedStatement, Refusal } from './refusal.ts'
import { resolveQuery } from './resolve.ts'
import { columnHint } from './column-hint.ts'
import type { Walk } from './walk-state.ts'
import type { Source } from './source.ts'
import type { Token } from './tokens.ts'
import { Work } from './work-budget.ts'

/**
 * The sealed value is a BigQueryQuery. Throws AppError SCHEMA_STALE if the stored facts have another version. `work`
 * counts the steps of the guard, and stops it when there are too many.
 */
export function confine(body: QueryBody, exposed: Catalog, limits: Limits, work = new Work()): Verdict {
  const rowCap = Math.min(body.limit ?? limits.rowCap, limits.rowCap)
  const lookUp = exposedOf(exposed)
  try {
    return { kind: 'confined', query: seal('BIGQUERY', rewrite(body, lookUp, rowCap, work)) }
  } catch (error) {
    if (error instanceof Malformed) return { kind: 'malformed', why: error.message, position: error.at }
    if (!(error instanceof Refusal)) throw error
    const position = error.at < 0 ? {} : { position: error.at }
    const blocked = { kind: error.kind, name: error.blocked }
    return { kind: 'denied', blocked, why: error.message, hint: error.hint, ...position }
  }
}

function rewrite(body: QueryBody, exposed: Exposed, rowCap: number, work: Work): BigQueryQuery {
  const tokens = lex(body.text, work)
  checkBound(tokens, body)
  const query = parse(tokens, work)
  const words = wordsOf(tokens)
  const prefix = prefixOf(exposed, words)
  const walk: Walk = {
    exposed,
    work,
    sets: new ColumnSets(work),
    aliases: new Set(),
    runs: [],
    words,
    prefix,
    printed: new PrintedColumns(words, prefix, work),
    paths: new Map(),
    stars: new Map(),
    sources: new Map(),
    spellings: new Map(),
    renamed: new Map(),
    unrenamed: new Set(),
  }
  resolveQuery(walk, query, null, null)
  const read = [...walk.paths.values()].filter((resolved) => resolved.kind === 'table')
  const tables = read.map(({ source, entry }) => ({ source, isWhole: entry.isWhole }))
  const sources = [...walk.sources.values()]
  const printed = print(walk, query)
  return {
    text: printed.text,
    params: boundOf(tokens, body.params),
    project: exposed.capture.project,
    location: exposed.capture.location,
    rowCap,
    reads: readsOf(walk, tables),
    closure: new Set(sources.flatMap(({ closure }) => closure)),
    shards: new Families(sources.flatMap(({ shards }) => shards)),
    names: new Map([...walk.renamed].map(([theirs, ours]) => [ours, theirs])),
    hasStar: walk.stars.size > 0,
    placeOf: printed.placeOf,
    columnHint: (name, at) => columnHint(walk, name, at),
    alias: walk.prefix,
  }
}

/** The reader of the body has already refused a missing parameter. This is a second check. */
function checkBound(tokens: readonly Token[], { params }: QueryBody): void {
  const missing = unbound(tokens, params)
  if (missing === null) return
  const hint = 'Give its value in `params`: an object for @name, an array for ?.'
  throw refusedStatement(missing.text, missing.at, hint, `parameter ${missing.text} has no value`)
}

/** Returns every name in the SQL, in lower case. A quoted path such as `a.b` is split at its dots. */
function wordsOf(tokens: readonly Token[]): Set<string> {
  const words = new Set<string>()
  for (const { name } of tokens) {
    if (name === '') continue
    const lower = name.toLowerCase()
    if (lower.includes('.')) for (const part of lower.split('.')) words.add(part)
    else words.add(lower)
  }
  return words
}

/** Returns `_vt`. If a name in the SQL or in the tables begins with `_vt`, adds a number. */
function prefixOf(exposed: Exposed, words: ReadonlySet<string>): string {
  const taken = [...exposed.likeOurs, ...[...words].filter(isLikeOurs)]
  if (taken.length === 0) return '_vt'
  const heads = new Set(taken.map((name) => name.slice(0, '_vt100000'.length)))
  let number = 100_000
  while (heads.has(`_vt${number}`)) number += 1
  return `_vt${number}`
}

function readsOf(walk: Walk, tables: readonly { readonly source: Source; readonly isWhole: boolean }[]): ReadTable[] {
  const reads = new Map<Source, Set<string>>()
  for (const { source, isWhole } of new Map(
    tables.map((each) => [walk.printed.of(each.source, each.isWhole), each]),
  ).values()) {
    const names = reads.get(source) ?? new Set<string>()
    for (const name of walk.printed.of(source, isWhole).names) names.add(name)
    reads.set(source, names)
  }
  return [...reads].map(([{ dataset, table }, names]) => ({ dataset, table, columns: [...names] }))
}
