// Limits calls that cannot be cancelled, and whose work grows with the product of the sizes of two arguments. The guard
// prints a limit on the product.
import { bytesAsText, literalText, steadily, unlessAny, type Bound } from './argument-bounds.ts'
import { call, cast, constant, either, operator, whole } from '../node-builders.ts'
import { words, type Node, type Struct } from '../allowed/allowed-nodes.ts'
import type { SqlType, Typed } from '../walk/from-items.ts'
import { Refusal } from '../refusal.ts'
import type { Level, Walk } from '../walk/scope.ts'
import { collectedIn, measure, withCollected } from './collected-values.ts'
import { isStoredColumn } from './mark-runs.ts'

/** The limit on the product of the sizes of two arguments, in bytes as text. */
const PRODUCT_MAX = 536_870_912
/** The same for functions that put one argument into the other, often. */
const JOINED_MAX = 33_554_432
/** A constant of at most this many bytes needs no bound. */
const FREE_BYTES = 64

/** For each function: pairs of arguments, by position, whose sizes are multiplied, and the limit of the product. */
const PAIRS: ReadonlyMap<string, Pairs> = new Map([
  ...pairs('pg_catalog.array_to_string', JOINED_MAX, [0, 1], [0, 2]),
  ...pairs('pg_catalog.replace', JOINED_MAX, [0, 2]),
  ...pairs('pg_catalog.regexp_replace', JOINED_MAX, [0, 2]),
  // PostgreSQL compares each part of the query with the target, and may replace it by the third query.
  ...pairs('pg_catalog.ts_rewrite', 4_194_304, [0, 1], [0, 2]),
  ...pairs('citext.strpos', PRODUCT_MAX, [0, 1]),
  ...pairs('citext.replace', PRODUCT_MAX, [0, 1]),
  ...pairs('citext.split_part', PRODUCT_MAX, [0, 1]),
  ...pairs('citext.translate', PRODUCT_MAX, [0, 1]),
  ...pairs('ltree.index', PRODUCT_MAX, [0, 1]),
])

type Pairs = readonly (readonly [number, number, number])[]

function pairs(name: string, most: number, ...places: readonly (readonly [number, number])[]): [string, Pairs][] {
  return [[name, places.map(([a, b]) => [a, b, most])]]
}

/** The limit on the text of a tsquery, in bytes. 800,000 bytes took seconds. */
const QUERY_TEXT_MAX = 262_144

/** Returns the printed arguments of a function with bounds. `owner` is pg_catalog or an extension. Throws Refusal. */
export function boundedWork(
  owner: string,
  name: string,
  args: readonly Node[],
  typedArgs: readonly Typed[],
  { major, at, isVariadic }: { readonly major: number; readonly at: number | undefined; readonly isVariadic: boolean },
): readonly Node[] {
  const [left, right] = typedArgs
  if (WORD_FUNCTIONS.test(name) && right) return [...args.slice(0, 1), boundedWords(right, at), ...args.slice(2)]
  if (SEEKING.has(name) && left && right) {
    const [a, b] = boundedOperands('&&', left, right, at)
    return [a, b, ...args.slice(2)]
  }
  if (owner === 'pg_catalog' && (name === 'ts_rank' || name === 'ts_rank_cd')) return boundedRank(name, args, at)
  if (owner === 'pg_catalog' && name === 'ts_headline') return boundedHeadline(args, major, at)
  if (owner === 'pg_catalog' && name.endsWith('to_tsquery')) return boundedQueryText(name, args, at)
  // Then the second argument is a list, which the first one joins.
  const isList = owner === 'pg_catalog' && name === 'concat_ws' && isVariadic && args.length === 2
  if (isList) return boundedPair(name, args, args, [1, 0, JOINED_MAX], at)
  const multiplied = PAIRS.get(`${owner}.${name}`) ?? []
  return multiplied.reduce((made: readonly Node[], pair) => boundedPair(name, args, made, pair, at), args)
}

function boundedPair(
  what: string,
  args: readonly Node[],
  made: readonly Node[],
  [first, second, most]: readonly [number, number, number],
  at: number | undefined,
): readonly Node[] {
  const [a, b] = [args[first], args[second]]
  if (!a || !b) return made
  const [known, sought] = [literalText(a)?.length, literalText(b)?.length]
  if (sought !== undefined && (sought <= FREE_BYTES || known !== undefined)) return made
  if (known !== undefined && known <= FREE_BYTES) return made
  const size = steadily(operator('*', bytesAsText(a), bytesAsText(b)), [a, b], what, at)
  const bounded = known === undefined ? first : second
  return made.map((arg, place) => (place === bounded ? unlessAny({ what, size, most }, arg, at) : arg))
}

/** Limits the text of to_tsquery(configuration, text) and similar functions. */
function boundedQueryText(what: string, args: readonly Node[], at: number | undefined): readonly Node[] {
  const text = args.at(-1)
  const isTyped = text !== undefined && (text.A_Const ?? text.ParamRef ?? text.NamedArgExpr) === undefined
  if (!isTyped || literalText(text) !== undefined) return args
  const bound = { what, size: steadily(bytesAsText(text), [text], what, at), most: QUERY_TEXT_MAX }
  return [...args.slice(0, -1), unlessAny(bound, text, at)]
}

/** Limits the right operand of `@@` if it is a text, which becomes a tsquery. Throws Refusal. */
export function boundedSearch({ node, type }: Typed, at: number | undefined): Node {
  const mayBeText = type === null || isType(type, 'text') || isType(type, 'varchar')
  const isShort = literalText(node) !== undefined || (node.A_Const ?? node.ParamRef) !== undefined
  if (!mayBeText || isShort || words(node.FuncCall?.funcname).at(-1)?.endsWith('tsquery') === true) return node
  const size = steadily(bytesAsText(node), [node], 'to_tsquery', at)
  return unlessAny({ what: 'to_tsquery', size, most: QUERY_TEXT_MAX }, node, at)
}

/**
 * The limit on (words and operators of the query) × (bytes of the text) in ts_headline(), which keeps up to 36 bytes for
 * each. With a phrase, up to version 15, it keeps the places of all words that it has tried: see phraseWork().
 */
const HEADLINE_MAX = 8_388_608
const FRAGMENTS_MAX = 100
const WORDS_MAX = 1_000

/**
 * Limits ts_headline(configuration, text, query, options), where the first and the last argument may be missing. With
 * many fragments, its time is quadratic, and no cancel ends it.
 */
function boundedHeadline(args: readonly Node[], major: number, at: number | undefined): readonly Node[] {
  // text-search.ts has given any other first constant a type.
  const first = args[0]?.A_Const ? 1 : 0
  const [text, query, options] = args.slice(first)
  if (!text || !query) return args
  const words = coveredWords(options, at)
  if ((literalText(text)?.length ?? Infinity) <= FREE_BYTES) return args
  const what = 'ts_headline'
  const asked = typed(query, 'tsquery')
  const nodes = cast(call('numnode', asked), 'int8')
  const product = operator('*', nodes, bytesAsText(text))
  const bound = { what, size: steadily(product, [text, query], what, at), most: HEADLINE_MAX }
  const work = major < 16 && mayHavePhrase(query) ? phraseWork(args.slice(0, first), text, asked, words) : undefined
  const greater: Node | undefined = work && { MinMaxExpr: { op: 'IS_GREATEST', args: [product, work] } }
  // The work is measured by a headline, so the product is checked before.
  const size = greater && either(operator('>', product, whole(HEADLINE_MAX)), product, greater)
  const bounded = unlessAny(size ? { ...bound, size } : bound, asked, at)
  return args.map((arg, index) => (index === first + 1 ? bounded : arg))
}

/**
 * Returns an upper limit of what a phrase takes, in the unit of HEADLINE_MAX. For each word of the text that is in the
 * query, PostgreSQL tries each such word among the next `words`, and keeps two bytes for each word in between.
 */
function phraseWork(configuration: readonly Node[], text: Node, query: Node, words: number): Node {
  const marked = call('ts_headline', ...configuration, text, query, constant('HighlightAll=true'))
  const found = cast(call('cardinality', call('string_to_array', marked, constant('<b>'))), 'int8')
  const nodes = cast(call('numnode', query), 'int8')
  const tries = operator('*', operator('*', nodes, found), whole(Math.ceil(words ** 2 / 128)))
  return either(operator('>', call('strpos', cast(query, 'text'), constant('<')), whole(0)), tries, whole(0))
}

/** Returns whether a query may have a phrase. plainto_tsquery() makes none. */
function mayHavePhrase(query: Node): boolean {
  const text = literalText(query.TypeCast?.arg ?? query)
  return text === undefined ? words(query.FuncCall?.funcname).at(-1) !== 'plainto_tsquery' : text.includes('<')
}

/** Returns how many words a fragment covers at most (prsd_headline() in wparser_def.c). Throws Refusal. */
function coveredWords(options: Node | undefined, at: number | undefined): number {
  const text = options && literalText(options)
  if (options && text === undefined) throw badOptions('its options are not a constant', at)
  const [fragments, words] = [optionIn('MaxFragments', text), optionIn('MaxWords', text)]
  if (fragments > FRAGMENTS_MAX || words > WORDS_MAX) throw badOptions('its options are too large', at)
  return Math.max(words * 10, 100) * Math.max(fragments, 1)
}

const DEFAULTS = { MaxFragments: 0, MaxWords: 35 }

/** Returns the value of an option, or Infinity if it is written in another way than `name=10` or `name="10"`. */
function optionIn(name: keyof typeof DEFAULTS, text = ''): number {
  const values = text.split(new RegExp(name, 'i')).slice(1)
  const numbers = values.map((value) => /^\s*=\s*(["']?)(\d{1,6})\1(?=[\s,]|$)/.exec(value)?.[2])
  return Math.max(...(numbers.length > 0 ? numbers.map((number) => Number(number ?? Infinity)) : [DEFAULTS[name]]))
}

function badOptions(why: string, at: number | undefined): Refusal {
  const hint = `Write the options as a constant, with MaxFragments up to ${FRAGMENTS_MAX} and MaxWords up to ${WORDS_MAX}.`
  return new Refusal('limit', 'ts_headline', `function ts_headline() is refused: ${why}`, hint, at)
}

/** The limit on a text that is cast to tsquery. The time is quadratic, and no cancel ends it: 160 kB took 1.4 s. */
const QUERY_CAST_MAX = 32_768

/** Returns why the value of a parameter may not have this type, or null. */
export function longQueryIn(text: string, type: SqlType): string | null {
  const bytes = Buffer.byteLength(text)
  if (bytes <= QUERY_CAST_MAX || !isType(type.kind === 'array' ? type.of : type, 'tsquery')) return null
  return `it has ${bytes} bytes; the limit is ${QUERY_CAST_MAX}`
}

/** The limit on a text that is cast to lquery: it keeps 24 bytes for each `|` in the text, for each of its levels. */
export const LEVELS_TEXT_MAX = 4_096
/** The limit on the points times the bars of a parameter. */
const LEVELS_MAX = 1_000_000

/** Returns the points of a text times its bars. An lquery keeps 24 bytes for each (lquery_in() of ltree_io.c). */
export function levelsIn(text: string): number {
  return text.length === 0 ? 0 : (text.split('.').length - 1) * (text.split('|').length - 1)
}

/** Returns why the value of a parameter may not become an lquery, or null. */
export function manyLevelsIn(text: string): string | null {
  const levels = levelsIn(text)
  return levels <= LEVELS_MAX ? null : `it has ${levels} points times bars; the limit is ${LEVELS_MAX}`
}

/** Returns the operand of a cast, limited if the cast may read a long text as tsquery or lquery. Throws Refusal. */
export function readAsQuery(walk: Walk, level: Level, from: Typed, to: SqlType, at: number | undefined): Typed {
  const type = to.kind === 'array' ? to.of : to
  const what = type.kind === 'named' && type.name === 'lquery' ? 'lquery' : 'tsquery'
  const isRead = what === 'lquery' ? !isNamed(from.type, 'lquery') : isType(type, what) && !isType(from.type, what)
  // The points and bars of a parameter are counted (param-values.ts).
  if (!isRead || from.node.A_Const || (what === 'lquery' && from.node.ParamRef)) return from
  const most = what === 'lquery' ? LEVELS_TEXT_MAX : QUERY_CAST_MAX
  const boundOf = (value: Node): Bound => ({ what, size: bytesAsText(value), most })
  return { ...from, node: withCollected(measure(walk, level, from.node, boundOf, at), collectedIn(from.node)) }
}

function isNamed(type: SqlType | null, name: string): boolean {
  return type?.kind === 'array' ? isNamed(type.of, name) : type?.kind === 'named' && type.name === name
}

/** Operators that compare all elements of one operand with all of the other. Cancelling has no effect on them. */
export const SEEKS: ReadonlySet<string> = new Set([
  ...['&&', '@>', '<@', '?|', '?&', '-', '<->', '?#', '##', '~='],
  // The operators of pg_trgm.
  ...['<%', '%>', '<<%', '%>>', '<<->', '<->>', '<<<->', '<->>>'],
  // The operators of ltree, for arrays.
  ...['@', '^@', '^@>', '^<@', '?@', '?@>', '?<@', '?~', '^?', '^~'],
])
/** Functions and operators of pg_trgm that seek a word in a text. The text is on the side of the greater-than sign. */
export const WORD_FUNCTIONS = /^(?:strict_)?word_similarity$/
export const WORD_OPERATORS = /^(?:<<?%|%>>?|<<?<->|<->>>?)$/
/**
 * The limit on the bytes of a text in which a word is sought. The time is quadratic, and no cancel ends it: 65,536 bytes
 * took a second. The columns of tables have a limit together: see #noteWords().
 */
export const WORD_TEXT_MAX = 32_768

/** Returns whether an operator in WORD_OPERATORS seeks in its left operand. */
export function seeksInLeft(symbol: string): boolean {
  return /^(?:%>|<->>)/.test(symbol)
}

/** Returns a text in which a word is sought, bounded unless it is a constant or a column. */
function boundedWords(text: Typed, at: number | undefined): Node {
  if (literalText(text.node) !== undefined || text.isStored === true || isFolded(text.node)) return text.node
  const size = steadily(bytesAsText(text.node), [text.node], 'comparison', at)
  return unlessAny({ what: 'comparison', size, most: WORD_TEXT_MAX }, text.node, at)
}

/** Returns whether the text is a column in lower case or without accents, of which an index may exist. */
function isFolded({ FuncCall: called }: Node): boolean {
  const [arg, ...others] = called?.args ?? []
  const isKnown = /^(?:lower|upper|unaccent)$/.test(words(called?.funcname).at(-1) ?? '')
  return isKnown && arg !== undefined && others.length === 0 && (isStoredColumn(arg) || isFolded(arg))
}

/** Operators of paths and polygons whose time is the product of the points. Other types have some of them, too. */
const SHAPE_OPERATORS: ReadonlySet<string> = new Set(['<->', '?#'])
const SHAPE = /^(?:path|polygon)$/
/** The limit on the product of two paths or polygons: 4,096 bytes each. 14 million pairs of points took 10 seconds. */
const SHAPES_MAX = 16_777_216

function isShape({ type }: Typed): boolean {
  return type?.kind === 'named' && SHAPE.test(type.name)
}

/** Returns the operands of `<->` and `?#`, bounded if they are shapes or may be. Throws Refusal. */
function boundedShapes(left: Typed, right: Typed, at: number | undefined): readonly [Node, Node] {
  const [a, b] = [asShape(left, right), asShape(right, left)]
  const product = operator('*', bytesAsText(a), bytesAsText(b))
  const isKnown = isShape(left) || isShape(right)
  const mayBe = operator('~', cast(call('pg_typeof', a), 'text'), constant(SHAPE.source.replace('?:', '')))
  const weighted = operator('*', product, whole(PRODUCT_MAX / SHAPES_MAX))
  const size = steadily(isKnown ? product : either(mayBe, weighted, product), [a, b], 'comparison', at)
  const bound = { what: 'comparison', size, most: isKnown ? SHAPES_MAX : PRODUCT_MAX }
  const isFirst = left.isStored !== true && kindOf(left) !== 'constant'
  return isFirst ? [unlessAny(bound, a, at), b] : [a, unlessAny(bound, b, at)]
}

/** Returns a parameter without a type beside a shape as such a shape, because the bound reads it as a text, too. */
function asShape({ node, type }: Typed, other: Typed): Node {
  const isUntyped = type === null && node.ParamRef !== undefined
  return isUntyped && other.type?.kind === 'named' && isShape(other) ? cast(node, other.type.name) : node
}

/** Functions that compare like the operators in SEEKS. */
export const SEEKING: ReadonlySet<string> = new Set([
  ...['jsonb_contains', 'jsonb_contained', 'jsonb_exists_any', 'jsonb_exists_all', 'jsonb_delete'],
  ...['word_similarity', 'strict_word_similarity'],
])
/** The types with many elements that the operators in SEEKS compare. */
const COLLECTIONS: ReadonlySet<string> = new Set([
  ...['jsonb', 'polygon', 'path', 'text', 'varchar', 'bpchar', 'ltree', 'lquery', 'ltxtquery'],
])
/** Functions whose result is no collection. */
const NO_COLLECTION = /range$|^(?:point|box|circle|line|lseg|center|bound_box|numnode)$|ts(?:query|vector)$/
/** The limit in bytes on a collection that the query makes and compares with a column. */
const MADE_MAX = 16_384

/**
 * Returns the operands of an operator in SEEKS, bounded if both may be large collections. If one side is a column and
 * the other a constant, both stay unchanged, so that an index can be used. Throws Refusal.
 */
export function boundedOperands(
  symbol: string,
  left: Typed,
  right: Typed,
  at: number | undefined,
): readonly [Node, Node] {
  const sides: readonly [Node, Node] = [left.node, right.node]
  if (!mayBeCollection(left) || !mayBeCollection(right)) return sides
  if (WORD_OPERATORS.test(symbol)) {
    return seeksInLeft(symbol) ? [boundedWords(left, at), right.node] : [left.node, boundedWords(right, at)]
  }
  if (symbol === '-' && !isType(left.type, 'jsonb') && right.type?.kind !== 'array') return sides
  const [a, b] = [kindOf(left), kindOf(right)]
  if (a === 'small' || b === 'small') return sides
  const mayBeShapes = [left, right].every((side) => side.type === null || isShape(side))
  if (SHAPE_OPERATORS.has(symbol) && mayBeShapes) return boundedShapes(left, right, at)
  if ((a === 'constant' && b !== 'made') || (b === 'constant' && a !== 'made')) return sides
  const what = 'comparison'
  if (a !== b && (a === 'stored' || b === 'stored')) {
    const made = a === 'stored' ? right.node : left.node
    const size = steadily(bytesAsText(made), [made], what, at)
    const bounded = unlessAny({ what, size, most: MADE_MAX }, made, at)
    return a === 'stored' ? [left.node, bounded] : [bounded, right.node]
  }
  const size = steadily(operator('*', bytesAsText(left.node), bytesAsText(right.node)), sides, what, at)
  const bound = { what, size, most: PRODUCT_MAX }
  return a === 'constant'
    ? [left.node, unlessAny(bound, right.node, at)]
    : [unlessAny(bound, left.node, at), right.node]
}

/** Operators that compare no collections, by the types of their operands. */
const PLAIN = new WeakSet<Struct<'A_Expr'>>()

/** Records an operator that compares no collections. Returns the operator. */
export function withTypes(made: Struct<'A_Expr'>, left: Typed | undefined, right: Typed | undefined): Node {
  if (left && right && ![left.type, right.type].every(isCollection)) PLAIN.add(made)
  return { A_Expr: made }
}

/** Returns whether an operator may compare each element of one operand with each element of the other. */
export function seeks(expr: Struct<'A_Expr'>): boolean {
  return SEEKS.has(words(expr.name).at(-1) ?? '') && !PLAIN.has(expr)
}

/** Refuses ANY (SELECT …) over collections, because a CASE cannot measure the rows of the query. */
export function checkAny(symbol: string, types: readonly (SqlType | null)[], at: number | undefined): void {
  if (!SEEKS.has(symbol) || !types.every(isCollection)) return
  const hint = `Write EXISTS (SELECT 1 FROM … WHERE a ${symbol} b).`
  throw new Refusal(
    'limit',
    'size',
    `operator ${symbol} with ANY (SELECT …) could take steps that cannot be cancelled`,
    hint,
    at,
  )
}

function mayBeCollection({ node, type }: Typed): boolean {
  return isCollection(type) && !NO_COLLECTION.test(words(node.FuncCall?.funcname).at(-1) ?? '')
}

function isCollection(type: SqlType | null): boolean {
  if (type === null || type.kind === 'array') return true
  return type.kind === 'named' && COLLECTIONS.has(type.name)
}

function isType(type: SqlType | null, name: string): boolean {
  return type?.kind === 'named' && type.schema === 'pg_catalog' && type.name === name
}

type Kind = 'small' | 'constant' | 'stored' | 'made'

function kindOf({ node, isStored }: Typed): Kind {
  const inner = node.TypeCast?.arg ?? node
  const text = literalText(node)
  if (text !== undefined) return text.length <= FREE_BYTES ? 'small' : 'constant'
  if (node.A_Const) return 'small'
  if (inner.ParamRef) return 'constant'
  const { elements } = inner.A_ArrayExpr ?? {}
  if (elements?.every(isScalar)) return elements.length <= FREE_BYTES / 2 ? 'small' : 'constant'
  return isStored ? 'stored' : 'made'
}

function isScalar(node: Node): boolean {
  const inner = node.TypeCast?.arg ?? node
  return inner.A_Const !== undefined || inner.ColumnRef !== undefined || inner.ParamRef !== undefined
}

/** The maximum number of words and operators in a query of ts_rank() and ts_rank_cd(). */
const NODES_MAX = 128
/** The limit on (words and operators)² × (bytes of the tsvector as text) if a query has prefixes. */
const PREFIXES_MAX = 33_554_432
/** A constant query of at most this many bytes needs no bound. With prefixes, only a quarter of the bytes is free. */
const FREE_QUERY = 128

/**
 * Limits ts_rank(weights, vector, query, normalization), where the first and the last argument may be missing. Its work
 * is the square of the number of words, times the square of their positions.
 */
function boundedRank(what: string, args: readonly Node[], at: number | undefined): readonly Node[] {
  const last = args.at(-1)
  const hasNormalization = args.length === 4 || (args.length === 3 && last !== undefined && isNumber(last))
  const place = args.length - (hasNormalization ? 2 : 1)
  const [vector, query] = [args[place - 1], args[place]]
  if (!vector || !query || isShortQuery(query)) return args
  const asked = typed(query, 'tsquery')
  const nodes = cast(call('numnode', asked), 'int8')
  const hasPrefix = operator('>', call('strpos', cast(asked, 'text'), constant(':*')), whole(0))
  const product = operator('*', operator('*', nodes, nodes), bytesAsText(typed(vector, 'tsvector')))
  const prefixes = either(hasPrefix, product, whole(0))
  const isSteady = (size: Node): Node => steadily(size, [vector, query], what, at)
  const bounded = unlessAny(
    { what, size: isSteady(nodes), most: NODES_MAX },
    unlessAny({ what, size: isSteady(prefixes), most: PREFIXES_MAX }, asked, at),
    at,
  )
  return args.map((arg, index) => (index === place ? bounded : arg))
}

function isNumber(node: Node): boolean {
  if (node.TypeCast) return words(node.TypeCast.typeName?.names).at(-1)?.startsWith('int') === true
  return node.A_Const?.ival !== undefined || node.A_Expr !== undefined
}

/** Returns whether the query is a short constant, or a function of one: to_tsquery('english', 'cat & dog'). */
function isShortQuery(query: Node): boolean {
  const name = words(query.FuncCall?.funcname).at(-1)
  const isMade =
    name?.endsWith('to_tsquery') === true && query.FuncCall?.args?.some((arg) => arg.NamedArgExpr) === false
  const text = literalText((isMade ? query.FuncCall?.args?.at(-1) : query) ?? query)
  return text !== undefined && text.length <= (text.includes(':') ? FREE_QUERY / 4 : FREE_QUERY)
}

/** Returns the value cast to its type. Without the cast, a literal or parameter would be text inside a CASE. */
function typed(arg: Node, type: string): Node {
  const isUntyped = arg.A_Const !== undefined || arg.ParamRef !== undefined || arg.CollateClause !== undefined
  return isUntyped ? cast(arg, type) : arg
}
