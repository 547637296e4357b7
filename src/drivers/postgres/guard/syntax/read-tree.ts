// Checks the parse tree: it must be one SELECT, contain only listed nodes and keys, and not be too deep. INTO, FOR
// UPDATE and all future clauses are therefore refused without a rule for each.
import { NODES, type NodeName, type SelectStmt } from '../allowed/allowed-nodes.ts'
import { type Refusal, refusedFunction, refusedLimit, refusedStatement } from '../refusal.ts'

/** The maximum depth of nodes in one expression. The deepest of 1,953 real queries has about 60. */
const EXPRESSION_DEPTH_MAX = 400
/** The maximum depth of queries inside queries. */
const QUERY_DEPTH_MAX = 60
/** The maximum number of arms in one chain of UNION, INTERSECT and EXCEPT, or of tables in one chain of joins. */
const CHAIN_MAX = 1_000

const KEYS: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map(
  Object.entries(NODES).map(([name, keys]) => [name, new Map(Object.entries(keys))]),
)

/** What a caller calls nodes and keys that are not listed. */
const CLAUSES: ReadonlyMap<string, readonly ['function' | 'statement', string]> = new Map([
  ['XmlExpr', ['function', 'xml']],
  ['XmlSerialize', ['function', 'xmlserialize']],
  ['RangeTableFunc', ['function', 'xmltable']],
  ['MergeSupportFunc', ['function', 'merge_action']],
  ['CurrentOfExpr', ['statement', 'WHERE CURRENT OF']],
  ['SetToDefault', ['statement', 'DEFAULT']],
  ['LockingClause', ['statement', 'FOR UPDATE']],
  ['lockingClause', ['statement', 'FOR UPDATE']],
  ['intoClause', ['statement', 'SELECT INTO']],
])

const STATEMENTS: ReadonlyMap<string, string> = new Map([
  ['VariableSetStmt', 'SET'],
  ['VariableShowStmt', 'SHOW'],
  ['TransactionStmt', 'BEGIN, COMMIT or ROLLBACK'],
  ['DeclareCursorStmt', 'DECLARE CURSOR'],
  ['CreateTableAsStmt', 'CREATE TABLE AS'],
  ['CreateStmt', 'CREATE TABLE'],
  ['ViewStmt', 'CREATE VIEW'],
  ['IndexStmt', 'CREATE INDEX'],
  ['CreatedbStmt', 'CREATE DATABASE'],
  ['CreateFunctionStmt', 'CREATE FUNCTION'],
  ['CreateTrigStmt', 'CREATE TRIGGER'],
  ['CreateEventTrigStmt', 'CREATE EVENT TRIGGER'],
])

/** `words` are the names and short strings of the text, from which generated aliases must differ. */
export interface Read {
  readonly select: SelectStmt
  readonly words: ReadonlySet<string>
}

interface Depth {
  readonly nodes: number
  readonly queries: number
  readonly chain: number
}

/** Returns the statement, which must be one SELECT. Throws Refusal. */
export function readStatement(tree: unknown): Read {
  const stmts = property(tree, 'stmts')
  if (!Array.isArray(stmts) || stmts.length === 0) throw refusedStatement('an empty text')
  const first: unknown = property(stmts[0], 'stmt')
  if (stmts.length > 1) {
    const place = property(stmts[1], 'stmt_location')
    throw refusedStatement('more than one statement', typeof place === 'number' ? place : undefined)
  }
  const select = property(first, 'SelectStmt')
  if (select === undefined) throw refusedStatement(statementName(first), 0)
  const words = new Set<string>()
  if (!isStruct('SelectStmt', select, { nodes: 0, queries: 1, chain: 0 }, words)) throw unknownPart('SelectStmt', -1)
  return { select, words }
}

function statementName(node: unknown): string {
  const tag = isObject(node) ? (Object.keys(node)[0] ?? 'statement') : 'statement'
  const named = STATEMENTS.get(tag)
  if (named !== undefined) return named
  return tag
    .replace(/Stmt$/, '')
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toUpperCase()
}

/** Checks the SELECT and all that is in it. Throws Refusal. */
function isStruct(name: 'SelectStmt', value: unknown, depth: Depth, words: Set<string>): value is SelectStmt {
  readStruct(name, value, depth, words)
  return true
}

function readStruct(name: NodeName, value: unknown, above: Depth, words: Set<string>): void {
  if (!isObject(value)) throw unknownPart(name, -1)
  const keys = KEYS.get(name)
  const depth = deeper(name, value, above)
  for (const key in value) {
    const kind = keys?.get(key)
    const held = value[key]
    if (kind === undefined) throw unknownPart(key, placeOf(value))
    if (kind === 'node') readNode(held, chained(name, key, depth), words)
    else if (kind === 'nodes') readNodes(held, depth, words)
    else if (kind === 'words' || kind === 'fields') readWords(held, kind === 'fields', depth, words)
    else if (kind === 'text') {
      if (typeof held !== 'string') throw unknownPart(key, placeOf(value))
      if (held.length <= 64) words.add(held)
    } else if (kind === 'flag') {
      if (held !== true) throw unknownPart(key, placeOf(value))
    } else if (kind === 'int' || kind === 'place') {
      if (!Number.isSafeInteger(held)) throw unknownPart(key, placeOf(value))
    } else readStruct(structName(kind), held, chained(name, key, depth), words)
  }
}

function readNodes(list: unknown, depth: Depth, words: Set<string>): void {
  if (!Array.isArray(list)) throw unknownPart('list', -1)
  for (const node of list) {
    if (isObject(node) && Object.keys(node).length === 0) continue
    readNode(node, depth, words)
  }
}

function readWords(list: unknown, withStars: boolean, depth: Depth, words: Set<string>): void {
  if (!Array.isArray(list)) throw unknownPart('list', -1)
  for (const node of list) {
    const tag = isObject(node) ? Object.keys(node)[0] : undefined
    if (tag !== 'String' && !(withStars && tag === 'A_Star')) throw unknownPart(tag ?? 'name', -1)
    readNode(node, depth, words)
  }
}

function readNode(node: unknown, depth: Depth, words: Set<string>): void {
  if (!isObject(node)) throw unknownPart('node', -1)
  const tags = Object.keys(node)
  const tag = tags[0]
  if (tag === undefined || tags.length !== 1) throw unknownPart(tags[1] ?? 'node', -1)
  const held = node[tag]
  if (!isNodeName(tag)) throw unknownPart(tag, placeOf(held), held)
  readStruct(tag, held, depth, words)
}

/** Returns the depth inside a node. A query begins a new expression. */
function deeper(name: NodeName, value: Record<string, unknown>, above: Depth): Depth {
  if (above.chain > CHAIN_MAX)
    throw refusedLimit('UNION', `more than ${CHAIN_MAX} parts in one chain of UNION or JOIN`, -1)
  if (name === 'SelectStmt') {
    if (above.queries > QUERY_DEPTH_MAX)
      throw refusedLimit('nesting', `queries are nested deeper than ${QUERY_DEPTH_MAX}`, -1)
    return { nodes: 0, queries: above.queries + 1, chain: above.chain }
  }
  if (above.nodes > EXPRESSION_DEPTH_MAX)
    throw refusedLimit('depth', `an expression is nested deeper than ${EXPRESSION_DEPTH_MAX}`, placeOf(value))
  return { nodes: above.nodes + 1, queries: above.queries, chain: name === 'JoinExpr' ? above.chain : 0 }
}

/** In a chain of set operations or joins, the left arm lengthens the chain without being deeper. */
function chained(name: NodeName, key: string, depth: Depth): Depth {
  if (key !== 'larg') return depth
  if (name === 'SelectStmt') return { nodes: 0, queries: depth.queries - 1, chain: depth.chain + 1 }
  if (name === 'JoinExpr') return { nodes: depth.nodes - 1, queries: depth.queries, chain: depth.chain + 1 }
  return depth
}

/** Refuses a node or key that is not listed, by the name that a caller knows. */
function unknownPart(name: string, at: number, held?: unknown): Refusal {
  const known = CLAUSES.get(name)
  if (known?.[0] === 'function') return refusedFunction(xmlName(name, held) ?? known[1], at)
  if (known) return refusedStatement(known[1], at)
  if (name.endsWith('Stmt')) return refusedStatement(statementName({ [name]: null }), at)
  return refusedStatement(name, at)
}

function xmlName(name: string, held: unknown): string | undefined {
  const op = property(held, 'op')
  return name === 'XmlExpr' && typeof op === 'string' ? op.replace('IS_', '').toLowerCase() : undefined
}

function placeOf(value: unknown): number {
  const place = property(value, 'location')
  return typeof place === 'number' ? place : -1
}

function structName(kind: string): NodeName {
  const name = kind.slice('struct:'.length)
  if (!isNodeName(name)) throw new TypeError(`no such node: ${kind}`)
  return name
}

function isNodeName(name: string): name is NodeName {
  return KEYS.has(name)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function property(value: unknown, key: string): unknown {
  return isObject(value) ? value[key] : undefined
}
