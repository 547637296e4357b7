// The guard: a caller's SQL becomes a text that can read nothing but what is exposed, or a refusal. Parse, confine, print,
// parse again, compare; no database, no clock, no I/O. Whatever it does not know it refuses.
import { seal } from '../../confined.ts'
import type { Catalog, Denied, Limits, Malformed, QueryBody, Verdict } from '../../driver.ts'
import { costBound } from './bound.ts'
import { exposedOf, readTable, type Exposed, type ExposedTable } from './exposed.ts'
import { limited } from './limit.ts'
import { sourceOf, type Places } from './locate.ts'
import type { SelectStmt } from './nodes.ts'
import type { Parser } from './parser.ts'
import { fromBytes, toBytes } from './position.ts'
import { prescan } from './prescan.ts'
import { printSelect } from './print.ts'
import type { PostgresQuery, ReadTable, RecordShape } from '../query.ts'
import { readStatement } from './read-tree.ts'
import { Refusal, refusedLimit, refusedStatement } from './refusal.ts'
import type { Walk } from './scope.ts'
import { select, type Selected } from './select.ts'
import { recall, remember, shapeOf } from './shapes.ts'
import { isSameTree } from './verify.ts'
import { syntaxHint } from './syntax-hints.ts'
import { checkWeight } from './weight.ts'

/** A body of POST …/query for this kind. */
export type PostgresBody = QueryBody

/** A text of no more tokens, no deeper, may be parsed on the spot (docs/decisions). */
const SMALL = { tokens: 400, depth: 60 }
/** UTF-8 bytes. The body's reader has said so already; nothing past it may be parsed. */
const TEXT_MAX = 65_536

/**
 * Confines one query to the exposed catalog. Returns the sealed query, the refusal, or that the text is no SQL. Rejects
 * where the signal is aborted, and with AppError SCHEMA_STALE for a capture of another version.
 */
export async function confine(
  parser: Parser,
  body: PostgresBody,
  catalog: Catalog,
  limits: Limits,
  signal: AbortSignal,
): Promise<Verdict> {
  const rowCap = Math.min(body.limit ?? limits.rowCap, limits.rowCap)
  const shape = shapeOf(body.text)
  const recalled = shape === null ? null : recall(catalog, shape, rowCap)
  const confined = (query: PostgresQuery): Verdict => {
    const locate = (place: number) => located(parser, { text: body.text, printed: query.text, place }, catalog, rowCap)
    return { kind: 'confined', query: seal('POSTGRES', { ...query, locate }) }
  }
  if (recalled !== null) return confined(recalled)
  const judged = await judge(parser, body.text, catalog, rowCap, signal)
  if (judged.kind !== 'made') return judged
  if (shape !== null) {
    await remember(catalog, shape, rowCap, judged.query, async (text) => {
      const again = await judge(parser, text, catalog, rowCap, signal)
      return again.kind === 'made' ? again.query : null
    })
  }
  return confined(judged.query)
}

interface Sought {
  readonly text: string
  readonly printed: string
  /** In characters of the printed text. */
  readonly place: number
}

/** Where in a caller's text something of its printed text is. It was confined before, so it is small enough and read. */
async function located(
  parser: Parser,
  { text, printed, place }: Sought,
  catalog: Catalog,
  rowCap: number,
): Promise<number | null> {
  const signal = AbortSignal.timeout(LOCATE_MS)
  const [source, again] = [await parser.parse(text, false, signal), await parser.parse(printed, false, signal)]
  if (source.kind !== 'tree' || again.kind !== 'tree') return null
  const places: Places = new Map()
  const made = rewrite(source.tree, exposedOf(catalog), rowCap, places)
  // What a shape became is the same text with other numbers in it; anything else is not to be trusted.
  if (made.query.text !== printed) return null
  const at = sourceOf(made.tree, again.tree, places, toBytes(printed, place))
  return at === null ? null : fromBytes(text, at)
}

const LOCATE_MS = 500

type Judged = { readonly kind: 'made'; readonly query: PostgresQuery } | Denied | Malformed

/** The whole way of a text that nothing is known of. */
async function judge(
  parser: Parser,
  text: string,
  catalog: Catalog,
  rowCap: number,
  signal: AbortSignal,
): Promise<Judged> {
  // The parser would stop at a NUL, and what follows would be lost without a word.
  const nul = text.indexOf('\0')
  if (nul >= 0) return malformed(text, 'the text holds a NUL', nul)
  if (text.length > TEXT_MAX) return denied(tooDeep(), text)
  const scanned = prescan(text)
  if (scanned.kind === 'comments') {
    return malformed(text, 'comments are nested too deep', scanned.at)
  }
  if (scanned.kind === 'deep') return denied(tooDeep(), text)
  const isSmall = scanned.tokens <= SMALL.tokens && scanned.depth <= SMALL.depth
  const parsed = await parser.parse(text, isSmall, signal)
  if (parsed.kind === 'malformed') return malformed(text, parsed.why, parsed.position)
  if (parsed.kind !== 'tree') return denied(tooDeep(), text)
  const made = attempt(parser, text, parsed.tree, exposedOf(catalog), rowCap)
  if ('kind' in made) return made
  const isShort = isSmall && made.query.text.length <= TEXT_MAX
  const again = await parser.parse(made.query.text, isShort, signal)
  if (again.kind === 'lost' || again.kind === 'deep') return denied(tooDeep(), text)
  if (again.kind === 'tree' && isSameTree(again.tree, made.tree)) return { kind: 'made', query: made.query }
  parser.report('the printed text, parsed again, differs', text)
  return denied(refusedStatement('this form of SELECT'), text)
}

interface Made {
  readonly tree: SelectStmt
  readonly query: PostgresQuery
}

function attempt(parser: Parser, text: string, tree: unknown, exposed: Exposed, rowCap: number): Made | Denied {
  try {
    return rewrite(tree, exposed, rowCap)
  } catch (error) {
    if (error instanceof Refusal) return denied(error, text)
    if (error instanceof RangeError) return denied(tooDeep(), text)
    parser.report(error instanceof Error ? `${error.name}: ${error.message}` : 'unknown', text)
    return denied(refusedStatement('this form of SELECT'), text)
  }
}

function tooDeep(): Refusal {
  return refusedLimit('depth', "the query's depth or length is too much")
}

function denied(refusal: Refusal, text: string): Denied {
  const { kind, blocked, message, hint, at } = refusal
  if (at < 0) return { kind: 'denied', blocked: { kind, name: blocked }, why: message, hint }
  const position = fromBytes(text, at)
  // "Berlin", meant as a text, is a name.
  const quotes = kind === 'column' && /["“”‘’]/.test(text[position] ?? '') ? `${QUOTES_HINT} ` : ''
  return { kind: 'denied', blocked: { kind, name: blocked }, why: message, hint: `${quotes}${hint}`, position }
}

const QUOTES_HINT = "If it is a text and no column, write straight single quotes: 'text'."

function malformed(text: string, why: string, position: number): Malformed {
  return { kind: 'malformed', why, position, hint: syntaxHint(text, position, why) }
}

/** Walks the tree and prints what it became. Throws Refusal. */
function rewrite(tree: unknown, exposed: Exposed, rowCap: number, places: Places | null = null): Made {
  const { select: raw, words } = readStatement(tree)
  const walk = newWalk(exposed, words, places)
  const selected = select(walk, raw, null, null)
  checkWeight(walk.weight)
  const confined = limited(walk, selected, rowCap + 1)
  for (const { finish } of walk.bases) finish()
  const query: PostgresQuery = {
    text: printSelect(confined),
    rowCap,
    names: walk.names,
    records: recordsOf(selected),
    reads: readTables(walk),
    bound: costBound(walk),
    searchPath: exposed.capture.trustedSchemas,
    serverVersion: exposed.capture.serverVersion,
  }
  return { tree: confined, query }
}

/** Output columns that are rows of a table, which the server knows for no more than records. */
function recordsOf({ outputs }: Selected): ReadonlyMap<number, RecordShape> {
  const records = new Map<number, RecordShape>()
  for (const [index, { type }] of outputs.entries()) {
    const row = type?.kind === 'array' ? type.of : type
    if (row?.kind !== 'row' || !row.oids) continue
    const columns = row.columns.map(({ name }, at) => ({ name, typeOid: row.oids?.[at] ?? 0 }))
    records.set(index, { columns, isList: type?.kind === 'array' })
  }
  return records
}

function newWalk(exposed: Exposed, words: ReadonlySet<string>, places: Places | null): Walk {
  return {
    exposed,
    prefix: prefix(exposed, words),
    aliases: 0,
    ctes: 0,
    names: new Map(),
    bases: [],
    weight: { items: 0, ctes: new Map() },
    sublinkNames: new Map(),
    selects: 0,
    rowFunctions: 0,
    operations: 0,
    sorts: false,
    spent: 0,
    depth: 0,
    places,
  }
}

const LIKE_OURS = /^_*[tc]\d+$/

/** Underscores before our aliases, more than any column or word of the query has: "t1" must not mean a column. */
function prefix(exposed: Exposed, words: ReadonlySet<string>): string {
  let longest = exposed.longestPrefix
  for (const word of words) if (LIKE_OURS.test(word)) longest = Math.max(longest, word.search(/[tc]/))
  return longest < 0 ? '' : '_'.repeat(longest + 1)
}

function readTables(walk: Walk): ReadTable[] {
  const used = new Map<ExposedTable, Set<string>>()
  for (const { base } of walk.bases) {
    const names = used.get(base.table) ?? new Set<string>()
    for (const column of base.used) names.add(column)
    used.set(base.table, names)
  }
  return [...used].map(([table, names]) => readTable(table, (column) => names.has(column.name)))
}
