// Bounds calls whose work is the product of the sizes of two arguments, or more, and which cannot be cancelled. The
// printed text compares the product with a limit, and the query fails if it is greater.
import {
  bytesAsText,
  call,
  cast,
  either,
  literalText,
  operator,
  steadily,
  unlessAny,
  whole,
} from './argument-bounds.ts'
import { word, words, type Node } from './allowed-nodes.ts'

/** The limit on the product of the sizes of two arguments, in bytes as text. */
const PRODUCT_MAX = 536_870_912
/** A constant of at most this many bytes needs no bound. */
const FREE_BYTES = 64

/** Functions of extensions, and the positions of the two arguments whose sizes are multiplied. */
const PAIRS: ReadonlyMap<string, readonly [number, number]> = new Map([
  ['citext.strpos', [0, 1]],
  ['citext.replace', [0, 1]],
  ['citext.split_part', [0, 1]],
  ['citext.translate', [0, 1]],
  ['ltree.index', [0, 1]],
])

/**
 * Bounds the printed arguments of a function. `owner` is pg_catalog or the extension of the function. Throws Refusal.
 */
export function boundedWork(
  owner: string,
  name: string,
  args: readonly Node[],
  at: number | undefined,
): readonly Node[] {
  if (owner === 'pg_catalog') return name === 'ts_rank' || name === 'ts_rank_cd' ? boundedRank(name, args, at) : args
  const pair = PAIRS.get(`${owner}.${name}`)
  return pair ? boundedPair(name, args, pair, at) : args
}

function boundedPair(
  what: string,
  args: readonly Node[],
  [first, second]: readonly [number, number],
  at: number | undefined,
): readonly Node[] {
  const [a, b] = [args[first], args[second]]
  if (!a || !b) return args
  const [known, sought] = [literalText(a)?.length, literalText(b)?.length]
  if (sought !== undefined && (sought <= FREE_BYTES || known !== undefined)) return args
  if (known !== undefined && known <= FREE_BYTES) return args
  const size = steadily(operator('*', bytesAsText(a), bytesAsText(b)), [a, b], what, at)
  const bounded = known === undefined ? first : second
  return args.map((arg, place) => (place === bounded ? unlessAny({ what, size, most: PRODUCT_MAX }, arg, at) : arg))
}

/** The maximum number of words and operators in a query of ts_rank() and ts_rank_cd(). */
const NODES_MAX = 128
/**
 * The limit on (number of words and operators)² × (bytes of the tsvector as text), for a query with prefixes. A prefix
 * may match every word.
 */
const PREFIXES_MAX = 33_554_432
/** A constant query of at most this many bytes needs no bound. With prefixes, a quarter of it needs none. */
const FREE_QUERY = 128

/**
 * Bounds ts_rank(weights, vector, query, normalization), of which the first and the last argument may be missing. The
 * work is the square of the number of words, multiplied by the square of their positions.
 */
function boundedRank(what: string, args: readonly Node[], at: number | undefined): readonly Node[] {
  const last = args.at(-1)
  const hasNormalization = args.length === 4 || (args.length === 3 && last !== undefined && isNumber(last))
  const place = args.length - (hasNormalization ? 2 : 1)
  const [vector, query] = [args[place - 1], args[place]]
  if (!vector || !query || isShortQuery(query)) return args
  const asked = typed(query, 'tsquery')
  const nodes = cast(call('numnode', asked), 'int8')
  const hasPrefix = operator('>', call('strpos', cast(asked, 'text'), { A_Const: { sval: { sval: ':*' } } }), whole(0))
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

/** Returns the value with its type. An untyped literal or parameter would be text inside a CASE. */
function typed(arg: Node, type: string): Node {
  const isUntyped = arg.A_Const !== undefined || arg.ParamRef !== undefined || arg.CollateClause !== undefined
  return isUntyped ? { TypeCast: { arg, typeName: { names: [word('pg_catalog'), word(type)], typemod: -1 } } } : arg
}
