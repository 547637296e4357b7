// The guard: a caller's GoogleSQL becomes a text that can read nothing but what is exposed, or a refusal. Lex, parse, look
// up, print; no database, no clock, no I/O. Whatever it does not know it refuses.
import { seal } from '../../confined.ts'
import type { Catalog, Limits, QueryBody, Verdict } from '../../driver.ts'
import type { BigQueryQuery, ReadTable } from '../query.ts'
import { exposedOf, isLikeOurs, type Exposed } from './exposed.ts'
import { lex } from './lex.ts'
import { parse } from './parse.ts'
import { printedColumns, printQuery } from './print.ts'
import { Broken, Refusal } from './refusal.ts'
import { resolveQuery, type Walk } from './resolve.ts'
import type { Token } from './tokens.ts'

/**
 * Confines one query to the exposed catalog. The sealed value is a BigQueryQuery. Throws AppError SCHEMA_STALE for a
 * capture of another version.
 */
export function confine(body: QueryBody, exposed: Catalog, limits: Limits): Verdict {
  const rowCap = Math.min(body.limit ?? limits.rowCap, limits.rowCap)
  const lookUp = exposedOf(exposed)
  try {
    return { kind: 'confined', query: seal('BIGQUERY', rewrite(body.text, lookUp, rowCap)) }
  } catch (error) {
    if (error instanceof Broken) return { kind: 'malformed', why: error.message, position: error.at }
    if (!(error instanceof Refusal)) throw error
    const position = error.at < 0 ? {} : { position: error.at }
    const blocked = { kind: error.kind, name: error.blocked }
    return { kind: 'denied', blocked, why: error.message, hint: error.hint, ...position }
  }
}

function rewrite(text: string, exposed: Exposed, rowCap: number): BigQueryQuery {
  const tokens = lex(text)
  const query = parse(tokens)
  const words = wordsOf(tokens)
  const walk: Walk = {
    exposed,
    words,
    prefix: prefixOf(exposed, words),
    paths: new Map(),
    stars: new Map(),
    sources: new Map(),
    renamed: new Map(),
    printed: text.length,
  }
  resolveQuery(walk, query, null, null)
  const sources = [...walk.sources.values()]
  return {
    text: printQuery(walk, query),
    project: exposed.capture.project,
    location: exposed.capture.location,
    rowCap,
    reads: readsOf(walk),
    closure: new Set(sources.flatMap(({ closure }) => closure)),
    shards: sources.flatMap(({ shards }) => shards),
    names: new Map([...walk.renamed].map(([theirs, ours]) => [ours, theirs])),
    alias: walk.prefix,
  }
}

/** Every name in the text, in lower case, quoted paths in their parts. */
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

/** `_vt`, or with the first number so that no name of the text or the tables begins like it. */
function prefixOf(exposed: Exposed, words: ReadonlySet<string>): string {
  const taken = [...exposed.likeOurs, ...[...words].filter(isLikeOurs)]
  let prefix = '_vt'
  for (let count = 1; taken.some((name) => name.startsWith(prefix)); count += 1) prefix = `_vt${count}`
  return prefix
}

function readsOf({ paths, ...walk }: Walk): ReadTable[] {
  const reads = new Map<string, ReadTable>()
  for (const resolved of paths.values()) {
    if (resolved.kind !== 'table') continue
    const { source, entry } = resolved
    const key = `${source.dataset}.${source.table}`
    const columns = printedColumns({ ...walk, paths }, source, entry.isWhole)
    const seen = reads.get(key)?.columns ?? []
    reads.set(key, { dataset: source.dataset, table: source.table, columns: [...new Set([...seen, ...columns])] })
  }
  return [...reads.values()]
}
