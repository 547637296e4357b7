// Parses an expression to a run: checks the brackets, finds sub-queries, and checks calls against the list of allowed
// functions. BigQuery checks all other syntax. But the guard must find everything that can name a table, so it knows
// every reserved word, and a reserved word that no rule allows ends the run.
import { functionHint, partFirst } from './function-hints.ts'
import { isNoCall, mayCall } from './allowed-functions.ts'
import { keyOf, type Piece, type Query } from './nodes.ts'
import { isQueryStart, readQuery } from './parse.ts'
import { withDepth, expect, key, peek, take, unexpected, type Reader } from './token-reader.ts'
import { Malformed, CALLABLE, refusedFunction, refusedOperator, refusedStatement } from './refusal.ts'
import { RESERVED_IN_GOOGLESQL } from '../../../reserved-words.ts'
import { isName, PART, type Token } from './tokens.ts'

const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/))

/** Reserved words that are allowed in any expression. */
const PLAIN = words(
  `ALL AND ANY ARRAY AS ASC AT BETWEEN CASE CAST COLLATE CUBE DESC DISTINCT ELSE END ESCAPE EXISTS EXTRACT FALSE GROUPING
  IF IGNORE IN INTERVAL IS LIKE NOT NULL NULLS OR OVER RANGE RESPECT ROLLUP SOME STRUCT THEN TO TRUE WHEN`,
)
/** More reserved words that are allowed in parentheses: for arguments of aggregates and for windows. */
const INSIDE = words(
  `BY CURRENT EXCLUDE FOLLOWING GROUP GROUPS HAVING LIMIT NO ORDER PARTITION PRECEDING ROWS UNBOUNDED WHERE`,
)
/** If one of these words follows `((SELECT …)`, this query is the first operand of a larger query. */
const CONTINUATIONS = words('UNION INTERSECT EXCEPT ORDER LIMIT FULL LEFT INNER |>')

export interface Wanted {
  readonly commas: boolean
  readonly words: ReadonlySet<string>
  /** `.*` is part of the run. If false, the run ends before `.*`. */
  readonly stars: boolean
}

const EXPRESSION: Wanted = { commas: false, words: new Set(), stars: false }
export const LIST: Wanted = { ...EXPRESSION, commas: true }
const ARGUMENTS: Wanted = { commas: true, words: INSIDE, stars: true }
const PIVOTED: Wanted = { commas: true, words: new Set([...INSIDE, 'FOR']), stars: true }

/**
 * Reads one expression or a list of expressions. Throws Malformed if there is none, and Refusal for a call or an
 * operator that is not allowed.
 */
export function readRun(reader: Reader, wanted: Wanted = EXPRESSION): Piece[] {
  const run: Piece[] = []
  readInto(reader, run, wanted)
  if (run.length === 0) throw unexpected(reader, 'an expression is missing')
  return run
}

function readInto(reader: Reader, run: Piece[], wanted: Wanted): void {
  for (let token = peek(reader); token !== undefined; token = peek(reader)) {
    if (token.key === PART) throw new Malformed('a number is directly followed by a name', token.at)
    const isTaken =
      token.kind === 'symbol'
        ? readSymbol(reader, run, wanted)
        : RESERVED_IN_GOOGLESQL.has(token.key)
          ? readReserved(reader, run, wanted)
          : readPlain(reader, run)
    if (!isTaken) return
  }
}

function readSymbol(reader: Reader, run: Piece[], wanted: Wanted): boolean {
  switch (key(reader)) {
    case ')':
    case ']':
    case '|>':
      return false
    case ',':
      if (!wanted.commas) return false
      break
    case '.':
      if (key(reader, 1) === '*' && !wanted.stars) return false
      break
    case '(':
      readParentheses(reader, run, ARGUMENTS, false)
      return true
    case '[':
      run.push(take(reader))
      withDepth(reader, () => readInto(reader, run, ARGUMENTS))
      run.push(expect(reader, ']'))
      return true
  }
  run.push(take(reader))
  return true
}

/**
 * Reads a reserved word. Returns false if the word ends the run. Only this function and readExtract() let FROM, UNNEST
 * or WITH into an expression.
 */
function readReserved(reader: Reader, run: Piece[], wanted: Wanted): boolean {
  const word = key(reader)
  const opens = key(reader, 1) === '('
  switch (word) {
    case 'SELECT':
    case 'JOIN':
      return false
    case 'FROM':
      if (!isDistinctFrom(run)) return false
      break
    case 'UNNEST':
      if (!opens || !['IN', 'ANY', 'SOME', 'ALL'].includes(keyOf(run.at(-1)))) return false
      break
    case 'WITH':
    case 'LEFT':
    case 'RIGHT':
      if (!opens) return false
      break
    case 'WITHIN':
      throw refusedStatement(
        'WITHIN GROUP',
        peek(reader)?.at ?? 0,
        'Write PERCENTILE_CONT(x, 0.5) OVER (PARTITION BY y), or APPROX_QUANTILES(x, 100)[OFFSET(50)] with GROUP BY.',
      )
    case 'EXTRACT':
      run.push(take(reader))
      if (opens) readExtract(reader, run)
      return true
    case 'EXCEPT':
      if (!opens || !wanted.words.has(word)) return false
      break
    default:
      if (!PLAIN.has(word) && !wanted.words.has(word)) return false
  }
  run.push(take(reader))
  if (opens && CALLS.has(word)) readParentheses(reader, run, ARGUMENTS, true)
  return true
}

/** The parentheses after these reserved words contain arguments, and never the first operand of a larger query. */
const CALLS = words('CAST COLLATE GROUPING IF LEFT RANGE RIGHT STRUCT UNNEST WITH')

/** True after x IS [NOT] DISTINCT, which FROM y may follow. */
function isDistinctFrom(run: readonly Piece[]): boolean {
  if (keyOf(run.at(-1)) !== 'DISTINCT') return false
  return keyOf(run.at(-2)) === 'IS' || (keyOf(run.at(-2)) === 'NOT' && keyOf(run.at(-3)) === 'IS')
}

/** Reads (part FROM expression). EXTRACT is the only call that has FROM between its arguments. */
function readExtract(reader: Reader, run: Piece[]): void {
  run.push(expect(reader, '('))
  withDepth(reader, () => {
    readInto(reader, run, EXPRESSION)
    run.push(expect(reader, 'FROM'))
    readInto(reader, run, EXPRESSION)
  })
  run.push(expect(reader, ')'))
}

/** Reads a name, a word that is not reserved, a literal or a parameter. */
function readPlain(reader: Reader, run: Piece[]): boolean {
  const token = take(reader)
  const calls = isName(token) && key(reader) === '('
  if (calls && !isNoCall(token.key)) checkCall(token, run)
  if (calls) checkPart(reader, token)
  else checkOperator(reader, token, run)
  checkTableArgument(reader, token, run)
  run.push(token)
  if (calls) readParentheses(reader, run, ARGUMENTS, true)
  return true
}

/**
 * Returns a hint with GoogleSQL's name for the function, and with the functions that may be called. Returns undefined
 * if no name is similar.
 */
function hintOf(path: readonly string[]): string | undefined {
  const [name = ''] = path
  const like = path.length === 1 ? functionHint(name) : ''
  return like === '' ? undefined : `${like}${CALLABLE}`
}

/** Refuses DATE_TRUNC('month', day), because a date part is no string in GoogleSQL. */
function checkPart(reader: Reader, token: Token): void {
  const first = peek(reader, 1)
  const hint = first?.kind === 'string' ? partFirst(token.name, first.text) : null
  if (first === undefined || hint === null) return
  throw refusedFunction(token.name, token.at, hint, `${token.name} takes its date part last, without quotes`)
}

/**
 * Refuses x ILIKE 'pattern', and the other words of DIALECT, which are operators in other dialects but names in
 * GoogleSQL.
 */
function checkOperator(reader: Reader, token: Token, run: readonly Piece[]): void {
  if (!DIALECT.has(token.key)) return
  const before = run.at(-1)
  const next = peek(reader)
  const isOperand =
    before?.kind === 'nested' ||
    (before !== undefined && (isName(before) || before.key === ')' || before.key === 'NOT'))
  const isPattern = next !== undefined && (next.kind === 'string' || next.kind === 'parameter' || isName(next))
  if (!isOperand || !isPattern) return
  const hint = token.key === 'ILIKE' ? 'Write LOWER(x) LIKE LOWER(pattern).' : "Write REGEXP_CONTAINS(x, r'pattern')."
  throw refusedOperator(token.key, hint, token.at)
}

const DIALECT = words('ILIKE RLIKE REGEXP SIMILAR')

function checkCall(token: Token, run: readonly Piece[]): void {
  const names = [token.name]
  let ownerAt = run.length - 1
  for (; keyOf(run[ownerAt]) === '.'; ownerAt -= 2) {
    const owner = run[ownerAt - 1]
    if (owner === undefined || owner.kind === 'nested' || !isName(owner)) break
    names.push(owner.name)
  }
  const path = names.reverse()
  // (x).f() calls a built-in function. A longer path would call a user-defined routine.
  const chained = keyOf(run[ownerAt]) === '.'
  if (!mayCall(path) || (chained && path.length > 1)) throw refusedFunction(path.join('.'), token.at, hintOf(path))
}

const NAMES_MORE = words('TABLE MODEL GRAPH CONNECTION DESCRIPTOR INPUT')

/** Refuses TABLE t, MODEL m and GRAPH g as an argument or a query, because they would read the whole object. */
function checkTableArgument(reader: Reader, token: Token, run: readonly Piece[]): void {
  if (!NAMES_MORE.has(token.key)) return
  const next = peek(reader)
  if (next === undefined || !isName(next) || !['(', ',', '=>'].includes(keyOf(run.at(-1)))) return
  throw refusedStatement(token.key, token.at, 'Read the table in FROM.', `${token.key} may not be an argument`)
}

/**
 * Reads a sub-query, or parentheses that are printed unchanged. The arguments of a call are never the first operand of
 * a larger query.
 */
function readParentheses(reader: Reader, run: Piece[], inside: Wanted, isCall: boolean): void {
  const open = expect(reader, '(')
  withDepth(reader, () => {
    if (isQueryStart(reader)) {
      run.push({ kind: 'nested', query: readQuery(reader) })
      expect(reader, ')')
      return
    }
    const start = run.push(open)
    if (!isCall && key(reader) === '(') {
      readParentheses(reader, run, ARGUMENTS, false)
      const query = continuedQuery(reader, run, start)
      if (query !== null) {
        run.length = start - 1
        run.push({ kind: 'nested', query })
        expect(reader, ')')
        return
      }
    }
    readInto(reader, run, inside)
    run.push(expect(reader, ')'))
  })
}

/** Continues after the first operand of ((SELECT …) UNION ALL …). Returns null if the parentheses contain no query. */
function continuedQuery(reader: Reader, run: readonly Piece[], start: number): Query | null {
  const first = run[start]
  if (run.length !== start + 1 || first?.kind !== 'nested' || !CONTINUATIONS.has(key(reader))) return null
  return readQuery(reader, first)
}

export function readPivoted(reader: Reader, run: Piece[]): void {
  run.push(expect(reader, '('))
  withDepth(reader, () => readInto(reader, run, PIVOTED))
  run.push(expect(reader, ')'))
}
