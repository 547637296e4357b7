// Limits runs of combining marks in values that a query makes. A collation of ICU compares a run in time quadratic in
// its length, and cancelling has no effect: 8,000 marks of Tibetan took 6 s. Callers cannot store values, so stored
// values are not limited. If a database or an exposed column compares by ICU, this file counts how many short runs (of
// up to RUN marks) a query may have joined in each value. If these are many, the guard prints a search of the value,
// which fails the query if it finds a run longer than RUN.
import { call, cast, constant, onlyIf, operator, whole } from '../node-builders.ts'
import { isNode, word, words, type Node, type Struct } from '../allowed/allowed-nodes.ts'
import type { Field, Typed } from '../walk/from-items.ts'
import type { Walk } from '../walk/scope.ts'
import { Refusal } from '../refusal.ts'
import type { TypeName } from '../../captured-facts.ts'
import { givesRows, literalText, steadily, unlessAny, unlessText, wholeNumber } from './argument-bounds.ts'

/**
 * The longest allowed run in a value that the printed text searched. Stored values are assumed to have no longer run.
 */
export const RUN = 32
/** A value in which more runs may join is searched. */
export const RUNS_MAX = 32
/**
 * This many marks of a constant count as one run, so a constant may have a run of 64 marks. One comparison of 1,024
 * marks took 0.1 s, and a query may compare the same values 10,000 times.
 */
const MARKS_OF_A_RUN = 2
/** A parameter or a searched value counts as this many runs, because it may have one run of RUN marks. */
const RUNS_OF_A_LONG_RUN = RUN / MARKS_OF_A_RUN
/** A number of runs that exceeds RUNS_MAX. */
const MANY = 1e6
/**
 * The runs of a json value that is parsed from a text which the query made. Its marks may be escape sequences (\u0301),
 * so a search finds them only in strings that are read from the value.
 */
const HIDDEN = Infinity
/** A text of at most this many bytes has no run longer than RUN. */
const FREE_BYTES = 64
/** Matches a run that is too long. Letters, digits, spaces, punctuation, arrows, lines, emoji and ASCII end a run. */
const LONG_RUN = `[^[:alnum:][:space:][:punct:]\\u0021-\\u007E\\u2190-\\u2BFF\\U0001F000-\\U0001FAFF]{${RUN + 1}}`

/** The number of runs in expressions whose parts do not show it, and in values that are searched. */
const KNOWN = new WeakMap<Node, number>()
/** For each value with its search, the value without the search. */
const SEARCHED = new WeakMap<Node, Node>()

/** Records how many runs may join in the value of a node. Returns the node. */
export function withRuns(node: Node, runs: number | undefined): Node {
  if (runs !== undefined) KNOWN.set(node, runs)
  return node
}

/** Returns the runs of a column of UNION: the greater number of its two columns. */
export function mostRuns(one: Field | undefined, other: Field | undefined): { runs?: number } {
  const runs = Math.max(one?.runs ?? -1, other?.runs ?? -1)
  return runs < 0 ? {} : { runs }
}

/** Returns the value with a search for a long run, if one may be in it and ICU compares texts. Throws Refusal. */
export function withoutLongRuns<T extends Typed>({ exposed }: Walk, typed: T, at: number | undefined): T {
  if (!exposed.comparesByIcu) return typed
  const { node } = typed
  const runs = runsOf(node)
  if (runs <= RUNS_MAX || runs === HIDDEN) return typed
  if (node.A_Const) throw tooLong(at)
  const text: Node = {
    CollateClause: { arg: cast(node, 'text'), collname: [word('pg_catalog'), word('und-x-icu')] },
  }
  const isSet = givesRows(node)
  const long = operator('>', call('octet_length', text), whole(FREE_BYTES))
  const found = call('length', call('substring', isSet ? text : onlyIf(long, text), constant(LONG_RUN)))
  const bound = { what: 'marks', size: steadily(found, [node], 'marks', at), most: RUN }
  const searched = isSet ? unlessText(bound, node) : unlessAny(bound, node, at)
  SEARCHED.set(searched, node)
  return { ...typed, node: withRuns(searched, RUNS_OF_A_LONG_RUN) }
}

/** Returns the value without the search that withoutLongRuns() added. */
export function unsearched(node: Node): Node {
  return SEARCHED.get(node) ?? node
}

/** Returns whether a constant or a parameter has a run longer than RUN. Escape sequences count as marks. */
export function hasLongRun(text: string): boolean {
  return marksIn(text) > RUN
}

function tooLong(at: number | undefined): Refusal {
  const why = `a text has more than ${MARKS_OF_A_RUN * RUNS_MAX} combining marks in a row, which ICU compares too slowly`
  return new Refusal('limit', 'collation', why, 'Remove the combining marks, or shorten the text.', at)
}

export function unsearchable(name: string): Refusal {
  const why = `column ${name} of a function may have long runs of combining marks, which USING would compare`
  return new Refusal('limit', 'collation', why, 'Write ON a.x = b.x instead of USING and NATURAL.', undefined)
}

const ESCAPED = /(?<!\\)\\+u?([\da-f]{4})/gi

function marksIn(text: string): number {
  const plain = text.includes('\\')
    ? text.replaceAll(ESCAPED, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
    : text
  let longest = 0
  for (const [run] of plain.matchAll(/\p{M}+/gu)) longest = Math.max(longest, [...run].length)
  return longest
}

/** Returns how many runs may join in the value of a confined expression. */
export function runsOf(node: Node): number {
  const known = KNOWN.get(node)
  if (known !== undefined) return known
  const runs = computed(node)
  KNOWN.set(node, runs)
  return runs
}

function computed(node: Node): number {
  if (node.A_Const) return Math.ceil(marksIn(literalText(node) ?? '') / MARKS_OF_A_RUN)
  if (node.ParamRef) return RUNS_OF_A_LONG_RUN
  if (node.ColumnRef) return 1
  if (node.TypeCast) return afterCast(node.TypeCast)
  if (node.A_Expr) return afterOperator(node.A_Expr)
  if (node.CaseExpr) {
    const results = (node.CaseExpr.args ?? []).map(({ CaseWhen: when }) => when?.result)
    return most([...results, node.CaseExpr.defresult])
  }
  if (node.BoolExpr ?? node.NullTest ?? node.BooleanTest) return 0
  if (node.JsonFuncExpr) return parsed(node.JsonFuncExpr.context_item?.raw_expr, MANY)
  if (node.JsonParseExpr) return parsed(node.JsonParseExpr.expr?.raw_expr, HIDDEN)
  // The arguments of these aggregates are printed inside sub-selects, so their runs are not known here.
  if (node.JsonArrayAgg ?? node.JsonObjectAgg ?? node.JsonArrayQueryConstructor) return HIDDEN
  // In an array, a row or a document, other characters separate the parts.
  return most(Object.values(node))
}

/** Returns the greatest number of runs in one of the values, which may also be lists of nodes. */
function most(values: readonly unknown[]): number {
  return values.reduce((all: number, value) => Math.max(all, isNode(value) ? runsOf(value) : 0), 0)
}

function sum(nodes: readonly Node[]): number {
  return nodes.reduce((all, node) => all + runsOf(node), 0)
}

/** Returns the runs of a document that is parsed from `from`: `made` if escape sequences may hide them. */
function parsed(from: Node | undefined, made: number): number {
  if (!from) return 0
  const inner = from.TypeCast?.arg ?? from
  if (inner.A_Const || inner.ParamRef || STORED.has(inner)) return runsOf(inner)
  const isDocument = from.FuncCall ? APART.test(nameOf(from.FuncCall)) : words(from.A_Expr?.name).at(-1) === '->'
  const runs = runsOf(from)
  return isDocument && runs !== HIDDEN ? runs : made
}

function nameOf({ funcname }: Struct<'FuncCall'>): string {
  return words(funcname).at(-1) ?? ''
}

/** References to columns of tables. */
const STORED = new WeakSet<Node>()

/** Records that the node is a column of a table. Returns the node. */
export function storedColumn(node: Node, { schema, name }: TypeName): Node {
  STORED.add(node)
  return withRuns(node, schema === 'pg_catalog' && FIXED.test(name) ? 0 : 1)
}

/** Returns whether the node is a column of a table. */
export function isStoredColumn(node: Node): boolean {
  return STORED.has(node)
}

const FIXED =
  /^(?:bool|int[248]|float[48]|numeric|oid|date|timetz|time|timestamptz|timestamp|interval|uuid|money|inet|bytea)$/

function afterCast({ arg, typeName }: Struct<'TypeCast'>): number {
  if (!arg) return 0
  const name = words(typeName?.names).at(-1) ?? ''
  if (FIXED.test(name) && !typeName?.arrayBounds) return 0
  if (/^_?jsonb$/.test(name)) return parsed(arg, MANY)
  return /^_?json$/.test(name) ? parsed(arg, HIDDEN) : runsOf(arg)
}

function afterOperator({ kind, name, lexpr, rexpr }: Struct<'A_Expr'>): number {
  const left = lexpr ? runsOf(lexpr) : 0
  if (kind === 'AEXPR_NULLIF') return left
  if (kind !== 'AEXPR_OP') return 0
  const symbol = words(name).at(-1) ?? ''
  if (symbol === '->>' || symbol === '#>>') return left === HIDDEN ? MANY : left
  if (symbol === '->' || symbol === '#>') return left
  return /^(?:[<>=]|<=|>=|<>|!?~~?\*?)$/.test(symbol) ? 0 : left + (rexpr ? runsOf(rexpr) : 0)
}

/** Functions that may join characters that were apart. */
const JOINING: ReadonlySet<string> = new Set([
  ...['repeat', 'lpad', 'rpad', 'replace', 'translate', 'regexp_replace', 'unistr', 'convert_from'],
  ...['array_to_string', 'string_agg'],
])
/** Functions that turn escape sequences of a json value into characters. */
const READS = /_text$|object_keys$|record(?:set)?$|^(?:to_)?jsonb/
/** Functions whose result keeps the arguments apart. */
const APART = /^(?:array_|json|jsonb|row_|to_json)/

/** Returns whether the function may join characters that were apart. */
export function joins(name: string): boolean {
  return JOINING.has(name)
}

/** Returns how many runs may join in the result of a function. */
export function runsOfCall(
  name: string,
  args: readonly Node[],
  { func_variadic: isVariadic }: Struct<'FuncCall'>,
): number {
  const all = sum(args)
  const [first, second, third] = args
  const joined = all === 0 ? 0 : MANY
  switch (name) {
    case 'chr':
      return 1
    case 'convert_from':
      return first && STORED.has(first) ? 1 : MANY
    case 'unistr':
      return first?.A_Const ? all : MANY
    case 'repeat': {
      const runs = (first ? runsOf(first) : 0) * Math.max(wholeNumber(second) ?? Infinity, 0)
      return Number.isNaN(runs) ? 0 : Math.min(runs, MANY)
    }
    case 'lpad':
    case 'rpad':
      return third && runsOf(third) > 0 ? MANY : (first && runsOf(first)) || 0
    case 'replace':
      return separates(third) ? all : joined
    case 'regexp_replace':
      return separates(third) && !literalText(third ?? {})?.includes('\\') ? all : joined
    case 'translate':
      return lengthOf(second) <= lengthOf(third) && third && runsOf(third) === 0 ? all : joined
    case 'array_to_string':
    case 'string_agg':
      return separates(second) ? all : joined
    case 'concat':
    case 'concat_ws':
      return isVariadic ? joined : all
    case 'format': {
      const conversions = first && !isVariadic ? literalText(first)?.match(/%[^%]/g)?.length : undefined
      return conversions === undefined ? joined : runsOf(args[0] ?? {}) + conversions * most(args.slice(1))
    }
    default:
      if (all === HIDDEN) return READS.test(name) ? MANY : HIDDEN
      return APART.test(name) ? most(args) : all
  }
}

function lengthOf(node: Node | undefined): number {
  return [...((node && literalText(node)) ?? '')].length
}

/** Returns whether a constant contains a character that is no mark, which ends a run. */
function separates(node: Node | undefined): boolean {
  return /\P{M}/u.test((node && literalText(node)) ?? '')
}
