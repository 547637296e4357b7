// Limits the work of a jsonpath, which must be a constant. If its work grows faster than the document, the guard prints
// a limit on the size of the document.
import { bytesAsText, literalText, steadily, unlessAny } from './argument-bounds.ts'
import { call, cast, constant, either, operator, TRUE, whole } from '../node-builders.ts'
import { words, type Node } from '../allowed/allowed-nodes.ts'
import type { Typed } from '../walk/from-items.ts'
import { degree, pathWork, type Term } from './json-path.ts'
import { Refusal } from '../refusal.ts'

/** The limit on the product of the sizes of two lists, in bytes as text, whose items a path compares. */
const COMPARED_MAX = 536_870_912
/** The same limit for lists that a filter builds again for each item: the database keeps them until the call ends. */
const KEPT_MAX = 67_108_864
/** The number of lists that a path may build from a document of any size. */
const FREE_LISTS = 6
/** The subscripts of a path may copy one item at most this often. */
const COPIES_MAX = 64

/** The functions that take a path as their second argument. */
export function takesPath(name: string): boolean {
  return name.startsWith('jsonb_path_')
}

/**
 * Returns the string in a cast of a string to jsonpath, and any other node unchanged. As an argument, the string means
 * the same as the cast, and boundedDocument() can limit the work of its path. The path of any other cast to jsonpath
 * must have linear work.
 */
export function plainPath(node: Node): Node {
  const { arg, typeName } = node.TypeCast ?? {}
  const isPath = words(typeName?.names).at(-1) === 'jsonpath' && (typeName?.arrayBounds ?? []).length === 0
  return isPath && arg?.A_Const ? arg : node
}

/** Replaces the path of a jsonb_path_* function by a plain constant. Call this before the arguments are confined. */
export function plainPaths(name: string, args: readonly Node[]): readonly Node[] {
  if (!takesPath(name)) return args
  return args.map((node, at) => {
    const named = node.NamedArgExpr
    if (named?.arg) return { NamedArgExpr: { ...named, arg: plainPath(named.arg) } }
    return at === 1 ? plainPath(node) : node
  })
}

/** Returns whether the operator takes a path on its right side. */
export function isPathOperator(symbol: string): boolean {
  return symbol === '@?' || symbol === '@@'
}

interface Operands {
  readonly symbol: string
  /** False for ANY and ALL. */
  readonly isOne: boolean
  readonly left: Typed
  readonly right: Node
  readonly at: number | undefined
}

/** Returns the left operand of `@?` or `@@`, bounded if the right one is a path. Throws Refusal. */
export function boundedPathOperand({ symbol, isOne, left, right, at }: Operands): Node {
  const { node, type } = left
  const isWritten = right.A_Const !== undefined || right.ParamRef !== undefined
  if (symbol === '@@') {
    const isDocument = type === null || (type.kind === 'named' && type.name === 'jsonb')
    // A path that is not written here is a cast, whose work is linear.
    if (!isDocument || !isWritten) return node
    const text = right.A_Const?.sval?.sval
    if (type === null && text !== undefined && isOne && (!text.includes('$') || isSearch(node))) return node
  }
  if (!isOne) throw notConstant(at)
  return boundedDocument(node, workOf(right, at), [], at)
}

/** Returns whether the value is the result of a text search function. */
function isSearch({ FuncCall: call }: Node): boolean {
  return /tsvector$/.test(words(call?.funcname).at(-1) ?? '')
}

/** Matches a path that ends in `.**`. It returns each level of the document together with all levels below it. */
const LAST_LEVELS = /\.\*\*\s*(?:\{[^}]*\bto\b[^}]*\})?\s*(?:\?.*)?$/s
/** The deepest document for a path that ends in `.**`. With 3,000 levels, eight calls took 1 GB. */
const LEVELS_MAX = 64

/** A path that ends in `.**` is assumed to return this many times the document. */
export const LEVELS = 8

/** Returns whether the path ends in `.**`. */
export function returnsLevels(path: Node | undefined): boolean {
  return LAST_LEVELS.test((path?.NamedArgExpr?.arg ?? path)?.A_Const?.sval?.sval ?? '')
}

/** Returns the bounded document of a path whose results become one list. The document may be a text. Throws Refusal. */
export function boundedList(doc: Node, path: Node, vars: readonly Node[], at: number | undefined): Node {
  const measured = boundedDocument(doc, workOf(path, at), vars, at)
  if (!returnsLevels(path) || (doc.A_Const ?? doc.ParamRef)) return measured
  return shallow(cast(doc, 'jsonb'), measured, at)
}

/** Limits the depth of the document to LEVELS_MAX. */
function shallow(doc: Node, bounded: Node, at: number | undefined): Node {
  if (doc.A_Const ?? doc.ParamRef) return bounded
  const isDeep = call('jsonb_path_exists', doc, constant(`strict $.**{${LEVELS_MAX + 1}}`))
  const size = steadily(either(isDeep, whole(LEVELS_MAX + 1), ZERO), [doc], 'jsonpath', at)
  return unlessAny({ what: 'jsonpath', size, most: LEVELS_MAX }, bounded, at)
}

const PLACES = ['target', 'path', 'vars', 'silent']

/** Bounds the arguments of a jsonb_path_* function. Throws Refusal. */
export function boundedPathArguments(args: readonly Node[], at: number | undefined): readonly Node[] {
  const given = new Map(args.map((node, index) => [node.NamedArgExpr?.name ?? PLACES[index] ?? '', node]))
  const valueOf = (name: string): Node | undefined => given.get(name)?.NamedArgExpr?.arg ?? given.get(name)
  const [doc, path, vars] = [valueOf('target'), valueOf('path'), valueOf('vars')]
  if (!doc || !path) return args
  const measured = boundedDocument(doc, workOf(path, at), vars ? [vars] : [], at)
  const bounded = returnsLevels(path) ? shallow(doc, measured, at) : measured
  if (bounded === doc) return args
  return args.map((node) => {
    if (node === doc) return bounded
    return node.NamedArgExpr?.arg === doc ? { NamedArgExpr: { ...node.NamedArgExpr, arg: bounded } } : node
  })
}

/** Returns the work of a path. Throws Refusal if the path is not a constant, or if the guard cannot parse it. */
export function workOf(path: Node, at: number | undefined): readonly Term[] {
  const value = path.A_Const
  if (value?.isnull) return []
  const text = value?.sval?.sval
  if (value?.sval === undefined) {
    throw notConstant(at)
  }
  const work = pathWork(text ?? '')
  if (work === null) throw notAPath(text ?? '', at)
  return work
}

function notConstant(at: number | undefined): Refusal {
  const hint = "Write the path as a string, and pass values as variables: '$.items[*] ? (@.price > $min)'."
  return new Refusal('limit', 'jsonpath', 'a jsonpath is not a constant', hint, at)
}

export function notAPath(text: string, at: number | undefined): Refusal {
  const why = `the jsonpath ${text.slice(0, 100)} has a form that the guard does not know`
  return new Refusal('limit', 'jsonpath', why, "Write a path such as '$.items[*] ? (@.price > 10)'.", at)
}

/** Throws Refusal unless the work of the path grows at most linearly with any document. */
export function checkLinear(path: Node, at: number | undefined): void {
  const work = workOf(path, at)
  if (work.some((term) => degree(term) > 1) || listsOf(work) > FREE_LISTS) throw tooMuchWork(at)
}

/** Returns the document, with a bound on its size if the work of the path is not linear. Throws Refusal. */
export function boundedDocument(doc: Node, work: readonly Term[], vars: readonly Node[], at: number | undefined): Node {
  if (work.some((term) => term.times > COPIES_MAX)) throw tooMuchWork(at)
  const known = vars.map(literalText)
  const fixed = known.every((text) => text !== undefined) ? Math.max(2, known.join('').length) : undefined
  const document = literalText(doc)?.length
  let bounded = doc
  for (const [power, most, product] of limits(work, fixed)) {
    if (document !== undefined && (!product || fixed !== undefined)) {
      if (document > most) throw tooMuchWork(at)
      continue
    }
    if (bounded === doc && (doc.A_Const ?? doc.ParamRef)) bounded = cast(doc, 'jsonb')
    const bytes = bytesAsText(doc)
    const passed = vars.map(bytesAsText).reduce((sum, each) => operator('+', sum, each), ZERO)
    // Most variables are short. Then the document need not be measured.
    const size = product
      ? either(operator('>', passed, whole(FREE_VARIABLES)), operator('*', bytes, passed), ZERO)
      : power === 1
        ? bytes
        : operator('+', bytes, passed)
    bounded = unlessAny({ what: 'jsonpath', size: steadily(size, [doc, ...vars], 'jsonpath', at), most }, bounded, at)
  }
  return bounded
}

/** What is limited: the items that JSON_TABLE finds in a document. It keeps 1.2 kB for each until the document ends. */
export const ITEMS = 'json_table'
const ITEMS_MAX = 100_000
/** A document of at most this many bytes has few enough items: one takes at least two bytes. */
const FREE_DOCUMENT = 262_144
/** The limits in bytes on a document whose items are counted, because that takes memory too. */
const COUNTED_MAX = 16_777_216
const COUNTED_TEXT_MAX = 4_194_304
/** The same if only JSON_TABLE itself can count the items. */
const UNCOUNTED_MAX = 524_288

/**
 * Returns the bounded document of a JSON_TABLE, with a limit on the items that its paths find. `paths` has the path of
 * the rows, and those of NESTED with the paths around them. Throws Refusal.
 */
export function boundedItems(
  { node, type }: Typed,
  bounded: Node,
  paths: readonly string[],
  at: number | undefined,
): Node {
  const inner = node.TypeCast?.arg ?? node
  // A filter at the end finds fewer items, and may have variables.
  const many = paths.filter((path) => !ONE_ITEM.test(path)).map((path) => path.replace(LAST_FILTER, ''))
  if (many.length === 0 || (inner.A_Const ?? inner.ParamRef)) return bounded
  const [isJsonb, isBytes] = ['jsonb', 'bytea'].map((name) => type?.kind === 'named' && type.name === name)
  const isCounted = !isBytes && many.every((path) => path.split('$').length === 2)
  const found = many.map((path) => {
    const document = isJsonb ? node : cast(node, 'jsonb')
    const items = call('jsonb_path_query_array', document, constant(path), cast(constant('{}'), 'jsonb'), TRUE)
    return call('jsonb_array_length', items)
  })
  const items = isCounted ? found.reduce((sum, each) => operator('+', sum, each)) : ZERO
  const bytes = call('pg_column_size', { A_ArrayExpr: { elements: [node] } })
  const most = !isCounted ? UNCOUNTED_MAX : isJsonb ? COUNTED_MAX : COUNTED_TEXT_MAX
  const counted = either(operator('>', bytes, whole(most)), whole(ITEMS_MAX + 1), items)
  const size = either(operator('>', bytes, whole(FREE_DOCUMENT)), counted, ZERO)
  return unlessAny({ what: ITEMS, size: steadily(size, [node], ITEMS, at), most: ITEMS_MAX }, bounded, at)
}

/** Matches a filter at the end of a path. */
const LAST_FILTER = /\?\s*\((?:[^()]|\([^()]*\))*\)\s*$/

/** Matches a path that finds at most one item. */
const ONE_ITEM = /^\s*(?:lax\s+|strict\s+)?\$\s*$/i

const ZERO = whole(0)

/**
 * Returns limits as [what, limit, isProduct]. `what` is 1 if the limit is on the document, and 2 if it is on the
 * document and the variables together: on the product of both sizes if isProduct is true, otherwise on the sum. `fixed`
 * is the size of constant variables.
 */
function limits(work: readonly Term[], fixed: number | undefined): (readonly [1 | 2, number, boolean])[] {
  let [alone, together, multiplied] = [Infinity, Infinity, Infinity]
  for (const { times, isKept, doc, vars, at } of work) {
    const most = (isKept ? KEPT_MAX : COMPARED_MAX) / (fixed === undefined ? times : times * fixed ** vars)
    const power = doc + at + (fixed === undefined ? vars : 0)
    if (power < 2) {
      // The document may be compared with each element of constant variables. Short variables need no limit.
      if (fixed !== undefined && vars > 0 && doc + at === 1 && fixed ** vars > FREE_VARIABLES)
        alone = Math.min(alone, most)
      continue
    }
    if (vars === 0 || fixed !== undefined) alone = Math.min(alone, most ** (1 / power))
    else if (vars === 1 && power === 2) multiplied = Math.min(multiplied, most)
    else together = Math.min(together, most ** (1 / power))
  }
  const lists = listsOf(work)
  if (lists > FREE_LISTS) alone = Math.min(alone, KEPT_MAX / lists)
  const found: (readonly [1 | 2, number, boolean])[] = []
  if (alone < Infinity) found.push([1, Math.floor(alone), false])
  if (together < Infinity) found.push([2, Math.floor(together), false])
  if (multiplied < Infinity) found.push([2, Math.floor(multiplied), true])
  return found
}

/** Variables of at most this many bytes need no bound. */
const FREE_VARIABLES = 64

/** Returns how many lists of the document's length the path builds. */
function listsOf(work: readonly Term[]): number {
  return work.reduce((sum, term) => (degree(term) === 1 ? sum + term.times : sum), 0)
}

function tooMuchWork(at: number | undefined): Refusal {
  const why = 'the jsonpath compares too many items with each other, in steps that cannot be cancelled'
  return new Refusal('limit', 'jsonpath', why, STRICT_HINT, at)
}

const STRICT_HINT =
  "Compare with one value: a constant, a variable, or a member in strict mode, as in 'strict $.items[*] ? (@.price > $.limit)'."
