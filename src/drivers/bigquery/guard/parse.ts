// Parses a query by recursive descent: WITH, SELECT, set operations, ORDER BY, pipes. Everything that can name a table
// becomes a node. All other text becomes runs.
import { LIST, readRun, type Wanted } from './parse-expression.ts'
import { readFrom, takeAlias } from './parse-from.ts'
import { readPipe } from './parse-pipe.ts'
import type { Cte, From, Nested, Operand, Piece, Pipe, Query, Select, SelectItem, Star, With } from './nodes.ts'
import { withDepth, expect, key, peek, take, takeName, takeWords, unexpected, type Reader } from './token-reader.ts'
import { Malformed, refusedStatement } from './refusal.ts'
import { isName, type Token } from './tokens.ts'
import type { Work } from './work-budget.ts'

/** Throws Malformed if the query is malformed, and Refusal if it is nested too deeply or not allowed. */
export function parse(tokens: readonly Token[], work: Work): Query {
  const reader: Reader = { tokens, work, at: 0, depth: 0 }
  if (tokens.length === 0) throw new Malformed('there is no query', 0)
  const query = readQuery(reader)
  if (reader.at < tokens.length) throw unexpected(reader)
  return query
}

/** True if a query begins here. `WITH (` begins none: it is an operator of expressions. */
export function isQueryStart(reader: Reader): boolean {
  const word = key(reader)
  return word === 'SELECT' || word === 'FROM' || (word === 'WITH' && key(reader, 1) !== '(')
}

export function readQuery(reader: Reader, first?: Operand): Query {
  const clause = first === undefined && key(reader) === 'WITH' ? readWith(reader) : null
  const operand = first ?? readOperand(reader)
  const rest: Query['rest'][number][] = []
  for (let operator = takeSetOperator(reader); operator !== null; operator = takeSetOperator(reader)) {
    rest.push({ operator, operand: readOperand(reader) })
  }
  const tail = readTail(reader)
  const pipes: Pipe[] = []
  while (key(reader) === '|>') pipes.push(readPipe(reader))
  return { with: clause, first: operand, rest, tail, pipes }
}

export function readWith(reader: Reader): With {
  expect(reader, 'WITH')
  const recursive = takeWords(reader, ['RECURSIVE']).length > 0
  const ctes: Cte[] = []
  do {
    const name = takeName(reader)
    if (name.name.includes('.')) throw new Malformed('the name of a WITH query contains a dot', name.at)
    expect(reader, 'AS')
    ctes.push({ name, query: readNested(reader).query })
  } while (takeComma(reader) && isName(peek(reader) ?? END))
  return { recursive, ctes }
}

const END: Token = { kind: 'symbol', text: '', key: '', name: '', at: 0, end: 0 }

function takeComma(reader: Reader): boolean {
  if (key(reader) !== ',') return false
  take(reader)
  return true
}

export function readNested(reader: Reader): Nested {
  expect(reader, '(')
  const query = withDepth(reader, () => readQuery(reader))
  expect(reader, ')')
  return { kind: 'nested', query }
}

function readOperand(reader: Reader): Operand {
  if (key(reader) === 'SELECT') return readSelect(reader)
  if (key(reader) === 'FROM') {
    take(reader)
    return { kind: 'from', from: readFrom(reader) }
  }
  if (key(reader) !== '(') throw unexpected(reader, 'a query is missing')
  const nested = readNested(reader)
  const aliased = key(reader) === 'AS' ? key(reader, 2) === '|>' : key(reader, 1) === '|>' && key(reader) !== ')'
  const alias = aliased ? takeAlias(reader) : null
  return alias === null ? nested : { kind: 'from', from: aliasedQuery(nested.query, alias) }
}

/** (query) AS t |> … means FROM (query) AS t |> …. */
function aliasedQuery(query: Query, alias: Token): From {
  return { parts: [{ joiner: [], item: { kind: 'derived', query, alias, sample: [], pivots: [] }, conditions: [] }] }
}

const SET_OPERATORS = ['UNION', 'INTERSECT', 'EXCEPT']

/** Reads for example UNION ALL or LEFT OUTER UNION ALL BY NAME. Returns null if there is no set operator here. */
export function takeSetOperator(reader: Reader): Token[] | null {
  const prefix = ['FULL', 'LEFT', 'INNER'].includes(key(reader)) ? (key(reader, 1) === 'OUTER' ? 2 : 1) : 0
  if (!SET_OPERATORS.includes(key(reader, prefix))) return null
  const operator: Token[] = []
  for (let count = 0; count <= prefix; count += 1) operator.push(take(reader))
  const quantifier = takeWords(reader, ['ALL', 'DISTINCT'])
  if (quantifier.length !== 1) throw unexpected(reader, 'a set operation takes ALL or DISTINCT')
  operator.push(...quantifier, ...takeWords(reader, ['STRICT']))
  if (key(reader) === 'CORRESPONDING') {
    operator.push(take(reader), ...takeWords(reader, ['BY']))
    if (operator.at(-1)?.key === 'BY') takeNames(reader, operator)
  } else if (key(reader) === 'BY') {
    operator.push(take(reader), expect(reader, 'NAME'), ...takeWords(reader, ['ON']))
    if (operator.at(-1)?.key === 'ON') takeNames(reader, operator)
  }
  return operator
}

/** Reads (a, b) into `into`. Only plain names are allowed. */
export function takeNames(reader: Reader, into: Token[]): void {
  into.push(expect(reader, '('))
  while (key(reader) !== ')') {
    into.push(takeName(reader))
    if (key(reader) !== ')') into.push(expect(reader, ','))
  }
  into.push(take(reader))
}

function readTail(reader: Reader): Piece[] {
  const tail: Piece[] = []
  if (key(reader) === 'ORDER') tail.push(take(reader), expect(reader, 'BY'), ...readRun(reader, LIST))
  if (key(reader) === 'LIMIT') tail.push(take(reader), ...readRun(reader))
  return tail
}

function readSelect(reader: Reader): Select {
  take(reader)
  const head = readHead(reader)
  const items: SelectItem[] = [readItem(reader)]
  while (takeComma(reader) && !isListEnd(reader)) items.push(readItem(reader))
  let from: From | null = null
  if (key(reader) === 'FROM') {
    take(reader)
    from = readFrom(reader)
  }
  return { kind: 'select', head, items, from, clauses: readClauses(reader) }
}

/** Reads the words after SELECT: DISTINCT, AS STRUCT or AS VALUE. */
export function readHead(reader: Reader): Token[] {
  if (key(reader) === 'WITH' && key(reader, 1) !== '(') {
    const after = peek(reader, 1)
    const name = after?.kind === 'word' ? `SELECT WITH ${after.text}` : 'SELECT WITH'
    throw refusedStatement(name, peek(reader)?.at ?? 0, 'Leave out the words between SELECT and the list.')
  }
  const head = takeWords(reader, ['ALL', 'DISTINCT'])
  if (key(reader) === 'TOP' && peek(reader, 1)?.kind === 'number') {
    throw refusedStatement(
      'TOP',
      peek(reader)?.at ?? 0,
      `Write LIMIT ${peek(reader, 1)?.text ?? 'n'} at the end of the query.`,
    )
  }
  if (key(reader) !== 'AS') return head
  head.push(take(reader))
  const kind = key(reader) === 'STRUCT' || key(reader) === 'VALUE' ? [take(reader)] : []
  if (kind.length !== 1) throw unexpected(reader, 'SELECT AS takes STRUCT or VALUE')
  return [...head, ...kind]
}

/** A comma at the end of the list is allowed. */
function isListEnd(reader: Reader): boolean {
  return peek(reader) === undefined || LIST_ENDS.has(key(reader))
}

const LIST_ENDS = new Set(`FROM WHERE GROUP HAVING QUALIFY WINDOW ORDER LIMIT UNION INTERSECT EXCEPT ) |>`.split(' '))

function readItem(reader: Reader): SelectItem {
  if (key(reader) === '*') return readStar(reader, [])
  const run = readRun(reader)
  return key(reader) === '.' ? readStar(reader, run) : { kind: 'expression', run }
}

/** Reads `*` or `.*`, with EXCEPT and REPLACE. */
function readStar(reader: Reader, of: readonly Piece[]): Star {
  if (key(reader) === '.') take(reader)
  expect(reader, '*')
  const except: Token[] = []
  if (key(reader) === 'EXCEPT' && key(reader, 1) === '(') {
    take(reader)
    takeNames(reader, except)
  }
  const replace: Piece[] = []
  if (key(reader) === 'REPLACE' && key(reader, 1) === '(') {
    replace.push(take(reader), expect(reader, '('))
    replace.push(...withDepth(reader, () => readRun(reader, LIST)))
    replace.push(expect(reader, ')'))
  }
  return { kind: 'star', of, except: except.filter(isName), replace }
}

const CLAUSES: Readonly<Record<string, Wanted | undefined>> = {
  WHERE: undefined,
  GROUP: LIST,
  HAVING: undefined,
  QUALIFY: undefined,
  WINDOW: LIST,
}

/** Reads WHERE, GROUP BY, HAVING, QUALIFY and WINDOW. Each may occur once, and they must have this order. */
function readClauses(reader: Reader): Piece[] {
  const clauses: Piece[] = []
  for (const [word, wanted] of Object.entries(CLAUSES)) {
    if (key(reader) !== word) continue
    clauses.push(take(reader))
    if (word === 'GROUP') clauses.push(expect(reader, 'BY'))
    clauses.push(...readRun(reader, wanted))
  }
  return clauses
}
