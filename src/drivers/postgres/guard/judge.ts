// Judges a query text that no cache knows: prescan, parse, confine, print, parse again, compare. The code is
// synchronous and pure, so the main thread judges short texts and a worker thread (parser-pool.ts) judges long ones.
import type { Denied, Malformed } from '../../driver.ts'
import { namesIcu } from './allowed/collations.ts'
import { costBound } from './bounds/cost-bound.ts'
import { COMPARED_MAX, KEPT_MAX, mayCollect, mayRepeat } from './bounds/collected-values.ts'
import { hideConditions } from './bounds/estimated-conditions.ts'
import { inlineCollecting } from './bounds/inlined-with.ts'
import { callsNothing, isLookup } from './bounds/key-lookup.ts'
import { isKnownSame } from './syntax/reparse-cache.ts'
import { comparedByIcu, exposedOf, heldTables, type Exposed, type ExposedTable } from './exposed.ts'
import { joinsByMany } from './bounds/join-equalities.ts'
import { switchedOff } from './bounds/unhashed.ts'
import { checkGrowth, PARAMS_MAX, SORTED_MAX } from './bounds/value-growth.ts'
import { limited } from './walk/row-cap.ts'
import { sourceOf, type Places } from './syntax/source-position.ts'
import type { SelectStmt } from './allowed/allowed-nodes.ts'
import { newParams } from './walk/params.ts'
import type { Case, Judged, Parse, Sought } from './syntax/parser.ts'
import { fromBytes, toBytes } from './syntax/text-offsets.ts'
import { DEPTH_MAX, prescan, TOKENS_MAX } from './syntax/prescan.ts'
import { printSelect } from './syntax/print.ts'
import type { PostgresQuery, ReadTable, RecordShape } from '../confined-query.ts'
import { readStatement, type Read } from './syntax/read-tree.ts'
import { Refusal, refusedLimit, refusedStatement } from './refusal.ts'
import { newAlias, TooMuchHere, type Params, type Walk } from './walk/scope.ts'
import { select, type Selected } from './walk/walk-select.ts'
import { syntaxHint } from './syntax/syntax-hints.ts'
import { isSameTree } from './syntax/verify-printed.ts'
import { checkPartitions, mayCopy } from './bounds/partition-copies.ts'
import { countPrinted } from './bounds/printed-size.ts'
import { leaveOutUnread } from './bounds/unread-outputs.ts'
import { checkWeight } from './bounds/query-weight.ts'

/** The maximum work for one text. */
export interface Bounds {
  /** The maximum length of the text in UTF-8 bytes. */
  readonly bytes: number
  readonly tokens: number
  readonly depth: number
  /** The maximum number of expressions walked and columns that stars expand to: see spend(). */
  readonly work: number
  /** The maximum number of nodes in the printed text: see countPrinted(). */
  readonly nodes: number
  /** The maximum length of the printed text in characters. */
  readonly printed: number
  /** If true, a text that exceeds the bounds is passed to a worker thread. If false, it is refused. */
  readonly isHere: boolean
  /**
   * Receives the amount of work on a text that parsed, and the number of nodes that it prints, even if the text was
   * refused. For tests of how the work grows.
   */
  readonly meter?: (spent: number, printed: number) => void
}

/** The bounds of the main thread: a few milliseconds at most. */
export const HERE: Bounds = {
  bytes: 4_096,
  tokens: 400,
  depth: 60,
  work: 3_000,
  nodes: 6_000,
  printed: 32_768,
  isHere: true,
}
/** The bounds of a worker thread. */
export const IN_THREAD: Bounds = {
  ...{ bytes: 65_536, tokens: TOKENS_MAX, depth: DEPTH_MAX },
  ...{ work: 40_000, nodes: 120_000, printed: 1_048_576, isHere: false },
}

/** Judges one text. An unexpected error becomes a refusal with `defect`. */
export function judge(parse: Parse, asked: Case, bounds: Bounds): Judged {
  const { text } = asked
  const refused = (refusal: Refusal): Judged => denied(refusal, text)
  const size = Buffer.byteLength(text)
  if (size > bounds.bytes) return bounds.isHere ? HEAVY : refused(tooLong('bytes', size, bounds.bytes))
  // The parser would stop at a NUL and silently drop the rest.
  const nul = text.indexOf('\0')
  if (nul >= 0) return malformed(text, 'the text contains a NUL character', nul)
  const scanned = prescan(text)
  if (scanned.kind === 'malformed') return malformed(text, scanned.why, scanned.at)
  if (scanned.kind === 'many') return bounds.isHere ? HEAVY : refused(tooLong('tokens', scanned.tokens, TOKENS_MAX))
  if (scanned.kind === 'deep') return refused(tooDeep())
  if (scanned.tokens > bounds.tokens || scanned.depth > bounds.depth) return HEAVY
  const parsed = parse(scanned.text)
  if (parsed.kind === 'malformed') return malformed(text, parsed.why, parsed.position)
  if (parsed.kind === 'lost') return parsed
  if (parsed.kind === 'deep') return refused(tooDeep())
  const made = attempt(parsed.tree, { ...asked, text: scanned.text }, bounds)
  return 'kind' in made ? made : compared(parse, made, scanned.text, bounds)
}

/**
 * Maps a position in the printed text to a position in the caller's text, or returns null if that is not possible. The
 * caller's text was confined before, so its size is allowed. Throws the errors of confining.
 */
export function locate(
  parse: Parse,
  asked: Case,
  { printed, place }: Sought,
  bounds: Bounds = IN_THREAD,
): number | null {
  const scanned = prescan(asked.text)
  if (scanned.kind !== 'fine') return null
  const [source, again] = [parse(scanned.text), parse(printed)]
  if (source.kind !== 'tree' || again.kind !== 'tree') return null
  const places: Places = new Map()
  const made = rewrite(source.tree, asked, bounds, places)
  // A cached shape may have printed other values. The position is valid only if the text is printed as before.
  if (made.query.text !== printed) return null
  const at = sourceOf(made.tree, again.tree, places, toBytes(printed, place))
  return at === null ? null : fromBytes(scanned.text, at)
}

/** Maps a position like locate(), on the main thread. Never throws. Returns 'heavy' if a worker thread must do it. */
export function locateHere(parse: Parse, asked: Case, sought: Sought): number | null | 'heavy' {
  if (Buffer.byteLength(asked.text) > HERE.bytes || sought.printed.length > HERE.printed) return 'heavy'
  const scanned = prescan(asked.text)
  if (scanned.kind !== 'fine') return null
  if (scanned.tokens > HERE.tokens || scanned.depth > HERE.depth) return 'heavy'
  try {
    return locate(parse, asked, sought, HERE)
  } catch {
    // The search exceeds the bounds of the main thread, or the exposure that applies now refuses the text.
    return 'heavy'
  }
}

const HEAVY: Judged = { kind: 'heavy' }

/** Parses the printed text and compares its tree with the confined tree. Skips the parse if its result is known. */
function compared(parse: Parse, { tree, query }: Made, text: string, bounds: Bounds): Judged {
  if (query.text.length > bounds.printed) {
    const refusal = tooLong('characters once the columns are named', query.text.length, bounds.printed)
    return bounds.isHere ? HEAVY : denied(refusal, text)
  }
  if (isKnownSame(parse, query.text, tree)) return { kind: 'made', query }
  const again = parse(query.text)
  if (again.kind === 'lost') return again
  if (again.kind === 'deep') return denied(tooDeep(), text)
  if (again.kind === 'tree' && isSameTree(again.tree, tree)) return { kind: 'made', query }
  return defective('the printed text differs from the confined tree when it is parsed again', text)
}

interface Made {
  readonly tree: SelectStmt
  readonly query: PostgresQuery
}

function attempt(tree: unknown, asked: Case, bounds: Bounds): Made | Judged {
  const { text } = asked
  try {
    return rewrite(tree, asked, bounds)
  } catch (error) {
    if (error instanceof Refusal) return denied(error, text)
    if (error instanceof TooMuchHere) return HEAVY
    if (error instanceof RangeError) return denied(tooDeep(), text)
    return defective(error instanceof Error ? `${error.name}: ${error.message}` : 'unknown', text)
  }
}

function defective(defect: string, text: string): Judged {
  return { ...denied(refusedStatement('this form of SELECT'), text), defect }
}

/** Returns the verdict on a text that broke the parser or exceeded its deadline. */
export function lostText(): Denied {
  return denied(refusedLimit('depth', 'the parser ran out of time or memory over this query'), '')
}

function tooDeep(): Refusal {
  return refusedLimit('depth', `the query is nested deeper than ${DEPTH_MAX} levels`)
}

function tooLong(what: string, found: number, most: number): Refusal {
  return refusedLimit('length', `the query has ${found} ${what}; the limit is ${most}`)
}

function denied(refusal: Refusal, text: string): Denied {
  const { kind, blocked, message, hint, at } = refusal
  if (at < 0) return { kind: 'denied', blocked: { kind, name: blocked }, why: message, hint }
  const position = fromBytes(text, at)
  // A string in double quotes, "Berlin", is a column name in SQL.
  const quotes = kind === 'column' && /["“”‘’]/.test(text[position] ?? '') ? `${QUOTES_HINT} ` : ''
  return { kind: 'denied', blocked: { kind, name: blocked }, why: message, hint: `${quotes}${hint}`, position }
}

const QUOTES_HINT = "If you mean a string, write straight single quotes: 'text'."

function malformed(text: string, why: string, position: number): Malformed {
  return { kind: 'malformed', why, position, hint: syntaxHint(text, position, why) }
}

/** Confines the tree and prints it. Throws Refusal. */
function rewrite(tree: unknown, asked: Case, bounds: Bounds, places: Places | null = null): Made {
  const read = readStatement(tree)
  const exposed = namesIcu(read.words) ? comparedByIcu(exposedOf(asked.catalog)) : exposedOf(asked.catalog)
  const comparedMax = exposed.comparesByIcu ? COMPARED_MAX : Infinity
  let settings: Settings = { exposed, bounds, places, comparedMax, keptMax: Infinity }
  for (;;) {
    const made = confineOnce(read, asked, settings)
    if ('tree' in made) return made
    // The query compares or keeps long values, so the printed text must limit them. Most queries need no such limit.
    // Each round adds at least one of the two limits.
    settings = { ...settings, ...made, bounds: forAgain(settings.bounds) }
  }
}

/** A query that must be confined again may take this part of the main thread's bounds, in each round. */
const PART_OF_AGAIN = 1 / 4

/** Returns the bounds of the next round. A worker thread has enough time for all rounds. */
function forAgain(bounds: Bounds): Bounds {
  const { work, nodes, isHere } = bounds
  return isHere ? { ...bounds, work: work * PART_OF_AGAIN, nodes: nodes * PART_OF_AGAIN } : bounds
}

interface Settings {
  readonly exposed: Exposed
  readonly bounds: Bounds
  readonly places: Places | null
  readonly comparedMax: number
  readonly keptMax: number
}

/** Returns the smaller limits that the query needs, if it needs any. */
function confineOnce(
  { select: raw, words }: Read,
  asked: Case,
  settings: Settings,
): Made | Pick<Settings, 'comparedMax' | 'keptMax'> {
  const { rowCap, params, paramBytes = PARAMS_MAX } = asked
  const { exposed, bounds, comparedMax, keptMax } = settings
  const collects = mayCollect(raw) || mayRepeat(raw)
  const walk = newWalk(settings, { words, collects }, newParams(params))
  let selected: Selected
  try {
    selected = select(walk, raw, null, null)
  } finally {
    bounds.meter?.(walk.spent, walk.printed)
  }
  checkWeight(walk.weight)
  const confined = limited(walk, selected, rowCap + 1)
  countPrinted(walk, 0, confined, undefined)
  if (walk.counts && walk.ctes > 0) inlineCollecting(confined)
  if (walk.counts && walk.unread.size > 0) leaveOutUnread(walk, confined)
  for (const { finish } of walk.bases) finish()
  const grown = checkGrowth(confined, walk.growing, exposed, () => newAlias(walk, 't', 'the query'), {
    isLimited: comparedMax === SORTED_MAX,
    paramBytes,
  })
  const lower = {
    comparedMax: grown.comparesOpen ? SORTED_MAX : comparedMax,
    keptMax: grown.keepsOpen && collects ? KEPT_MAX : keptMax,
  }
  if (lower.comparedMax < comparedMax || lower.keptMax < keptMax) {
    if (walk.isHere && walk.printed > forAgain(bounds).nodes) throw new TooMuchHere()
    return lower
  }
  for (const { limit } of walk.bases) limit(grown)
  const lists = mayCopy(walk, words) ? checkPartitions(confined, exposed) : null
  const bound = costBound(walk)
  const reads = { isLookup: isLookup(walk, confined), callsNothing: bound !== null && callsNothing(confined) }
  const off = [switchedOff(confined, grown, walk.isGrouped), joinsByMany(confined) ? 'enable_mergejoin' : '']
  hideConditions(confined)
  const query: PostgresQuery = {
    text: printSelect(confined),
    slots: walk.params.slots,
    patterns: [...walk.params.patterns.values()],
    params: [],
    rowCap,
    names: walk.names,
    records: recordsOf(selected),
    reads: readTables(walk),
    implicit: exposed.capture.implicit,
    bound,
    ...reads,
    ...(lists && { lists }),
    searchPath: exposed.capture.trustedSchemas,
    switchedOff: off.filter((setting) => setting !== '').join(' '),
    serverVersion: exposed.capture.serverVersion,
  }
  return { tree: confined, query }
}

/** Returns the output columns that contain whole rows of a table. The server describes their type only as record. */
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

function newWalk(
  { exposed, bounds, places, comparedMax, keptMax }: Settings,
  { words, collects }: { readonly words: ReadonlySet<string>; readonly collects: boolean },
  params: Params,
): Walk {
  return {
    exposed,
    params,
    prefix: prefix(exposed, words),
    aliases: 0,
    ctes: 0,
    names: new Map(),
    bases: [],
    weight: { items: 0, joined: 0, sorts: 0, ctes: new Map() },
    sublinkNames: new Map(),
    selects: 0,
    rowFunctions: 0,
    operations: 0,
    sorts: false,
    isGrouped: false,
    growing: new Set(),
    collects,
    comparedMax,
    keptMax,
    readsLoose: false,
    counts: false,
    unread: new Set(),
    joined: new Set(),
    spent: 0,
    spentMax: bounds.work,
    printed: 0,
    printedMax: bounds.nodes,
    isHere: bounds.isHere,
    depth: 0,
    places,
  }
}

const LIKE_OURS = /^_*[tc]\d+$/

/**
 * Returns the underscores before generated aliases. There are so many that no alias equals a column or a word of the
 * query.
 */
function prefix(exposed: Exposed, words: ReadonlySet<string>): string {
  let longest = exposed.longestPrefix
  for (const word of words) if (LIKE_OURS.test(word)) longest = Math.max(longest, word.search(/[tc]/))
  return longest < 0 ? '' : '_'.repeat(longest + 1)
}

function readTables({ bases, exposed }: Walk): readonly ReadTable[] {
  const used = new Map<ExposedTable, Set<string>>()
  for (const { base } of bases) {
    const names = used.get(base.table) ?? new Set<string>()
    for (const column of base.used) names.add(column)
    used.set(base.table, names)
  }
  return heldTables(exposed, used)
}
